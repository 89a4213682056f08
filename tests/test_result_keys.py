"""tools/check_result_keys.py finds keys of results that are named outside src/results."""
import subprocess
import sys

import conftest


def check(root):
    return subprocess.run([sys.executable, conftest.ROOT / "tools/check_result_keys.py", root], capture_output=True, text=True)


def test_a_key_outside_results_is_found(tmp_path):
    (tmp_path / "docs/reference/schema").mkdir(parents=True)
    (tmp_path / "docs/reference/schema/run.json").write_text('{"properties": {"images": {}, "wall_s": {}}}')
    for name in ("results", "cli", "trial"):
        (tmp_path / "src" / name).mkdir(parents=True)
    (tmp_path / "src/results/run_result.cc").write_text('fields("images", result.images); json["wall_s"];\n')
    (tmp_path / "src/cli/run_test.cc").write_text('json["images"];\n')
    (tmp_path / "src/cli/run.cc").write_text('const int images = result.images;\n')
    assert check(tmp_path).returncode == 0
    (tmp_path / "docs/reference/schema/run.json").write_text('{"properties": {"images": {}, "wall_s": {}, "promised": {}}}')
    (tmp_path / "src/results/advice_result.cc").write_text('fields("promised", advice.promised);\n')  # of another result
    found = check(tmp_path)
    assert found.returncode == 1 and 'schema/run.json: no struct of results describes "promised"' in found.stdout
    (tmp_path / "docs/reference/schema/run.json").write_text('{"properties": {"images": {}, "wall_s": {}}}')
    for use in ('json["images"]', 'Json{{"wall_s", 1.0}}', 'json.value("images", 0)', 'GetInteger(json, "images")', 'PutIfAny(json, "wall_s", wall)'):
        (tmp_path / "src/trial/outcome.cc").write_text(f"first;\n{use};\n")
        found = check(tmp_path)
        assert found.returncode == 1 and "src/trial/outcome.cc:2" in found.stdout, use
