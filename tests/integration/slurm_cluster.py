"""A Slurm cluster of two nodes on this machine: its daemons in a folder of their own, on free ports of loopback."""
import getpass
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scontrol")
NODES = ("n1", "n2")


def missing():
    """Returns the programs that are not here."""
    return [name for name in PROGRAMS if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") is None]


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Cluster:
    """`partitions`: lines for slurm.conf. Each node has `cpus` CPUs, whatever the machine has."""

    def __init__(self, folder, partitions, cpus=2):
        self.folder = pathlib.Path(folder)
        for name in ("run", "state", "log", "munge", *(f"spool.{node}" for node in NODES)):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "munge").chmod(0o700)
        key = self.folder / "munge/key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        self.configure(partitions, cpus)
        self.environment = {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": f"{os.environ['PATH']}:/usr/sbin"}
        self.processes = []

    def configure(self, partitions, cpus):
        d, host, user = self.folder, socket.gethostname().split(".")[0], getpass.getuser()
        control, *ports = free_ports(1 + len(NODES))
        nodes = "\n".join(f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={cpus} RealMemory=2000 State=UNKNOWN"
                          for node, port in zip(NODES, ports))
        (d / "slurm.conf").write_text(f"""ClusterName=t
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={control}
AuthType=auth/munge
AuthInfo=socket={d}/run/munge.socket,cred_expire=5
CryptoType=crypto/munge
SlurmUser={user}
SlurmdUser={user}
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=1,batch_sched_delay=0
ReturnToService=2
KillWait=5
MinJobAge=300
StateSaveLocation={d}/state
SlurmdSpoolDir={d}/spool.%n
SlurmctldPidFile={d}/run/slurmctld.pid
SlurmdPidFile={d}/run/slurmd.%n.pid
SlurmctldLogFile={d}/log/slurmctld.log
SlurmdLogFile={d}/log/slurmd.%n.log
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SlurmdParameters=config_overrides
PropagateResourceLimits=NONE
{nodes}
{partitions}
""")

    def __enter__(self):
        d = self.folder
        try:
            self.start("munged", "--foreground", "--force", f"--key-file={d}/munge/key", f"--socket={d}/run/munge.socket", f"--pid-file={d}/munge/pid",
                       f"--log-file={d}/munge/log", f"--seed-file={d}/munge/seed")
            self.wait_for(lambda: (d / "run/munge.socket").exists(), 20, "munged")
            self.start("slurmctld", "-D")
            for node in NODES:
                self.start("slurmd", "-D", "-N", node)
            self.wait_for(lambda: self.call("sinfo", "-h", "-o", "%T %D").strip() and all(line.split()[0] == "idle" for line in self.call("sinfo", "-h", "-o", "%T").split("\n") if line), 60, "the nodes")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def start(self, *command):
        log = open(self.folder / f"log/{command[0]}.out", "ab")
        self.processes.append(subprocess.Popen(command, env=self.environment, stdout=log, stderr=log, start_new_session=True))

    def call(self, *command, check=True):
        done = subprocess.run([str(word) for word in command], env=self.environment, capture_output=True, text=True, timeout=60, check=False)
        assert not check or done.returncode == 0, f"{command}: {done.stderr}\n{self.logs()}"
        return done.stdout

    def sbatch(self, *arguments, **environment):
        done = subprocess.run(["sbatch", "--parsable", *map(str, arguments)], env={**self.environment, **environment}, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, f"{done.stderr}\n{self.logs()}"
        return done.stdout.strip().split(";")[0]

    def state(self, job):
        """The states of a job, or of the tasks of its array, by task."""
        states = {}
        for block in self.call("scontrol", "-o", "show", "job", job, check=False).splitlines():
            facts = dict(word.split("=", 1) for word in block.split() if "=" in word)
            if "JobState" in facts:
                states[facts.get("ArrayTaskId", "")] = facts
        return states

    def wait(self, job, seconds=180):
        """Returns the facts of each task once all have ended."""
        done = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "DEADLINE", "OUT_OF_MEMORY")

        def ended():
            states = self.state(job)
            return states and all(facts["JobState"] in done for facts in states.values())
        self.wait_for(ended, seconds, f"job {job}")
        return self.state(job)

    def wait_for(self, condition, seconds, what):
        until = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < until, f"{what}: not in {seconds} s\n{self.call('squeue', check=False)}\n{self.logs()}"
            time.sleep(0.2)

    def logs(self):
        return "\n".join(f"--- {path.name}\n" + "\n".join(path.read_text(errors="replace").splitlines()[-15:]) for path in sorted((self.folder / "log").iterdir()))
