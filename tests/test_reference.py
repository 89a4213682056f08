"""The generated pages of the reference are current."""
import subprocess
import sys

from conftest import PROGRAM, ROOT


def test_the_page_of_verbs_is_the_help_of_the_program():
    done = subprocess.run([sys.executable, ROOT / "tools/make_reference.py", PROGRAM, "--check"], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
