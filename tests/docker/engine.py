"""A Docker engine of the tests' own: started, killed and started again without touching anybody's containers.

No image is pulled. The base is a Debian root made by debootstrap, and with this machine's own node in it that of the
Node worker; the images are built on them from `deploy/Dockerfile`. All are kept between runs in `ROOT`; the build
itself sees what changed.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from needed import skip_if

PROJECT = Path(__file__).parents[2]
ROOT = Path(os.environ.get("PACELINE_TEST_DOCKER", "/var/tmp/paceline-docker"))
"""On a real disk: an engine's own storage driver does not work on top of another's."""
BASE = "paceline-base:test"
NODE_BASE = "paceline-node-base:test"
SERVICES = "paceline:test"
WORKER = "whatsapp-worker-image:test"
NETWORK = "paceline-test-fleet"
BAILEYS_WORKER = "whatsapp-worker-baileys:test"
PACKAGES = "python3,python3-venv,ca-certificates,redis-server"
NODE_DOCKERFILE = f"""
FROM {BASE}
COPY node /usr/local/bin/node
COPY npm /usr/local/lib/node_modules/npm
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm && node --version && npm --version
ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
"""
START_SECONDS = 60
BUILD_SECONDS = 600


def why_no_engine() -> str:
    """Empty if there can be one."""
    missing = _missing("tools/ensure-docker", "dockerd", "docker", "debootstrap")
    return missing or ("" if os.geteuid() == 0 else "a Docker engine of our own needs root")


def require_engine() -> None:
    skip_if(why_no_engine())


def require_node() -> None:
    skip_if(_missing("tools/ensure-node", "node", "npm"))


def _missing(see: str, *programs: str) -> str:
    missing = [name for name in programs if shutil.which(name) is None]
    return f"no {', '.join(missing)} (see {see})" if missing else ""


@contextmanager
def running() -> "Iterator[Engine]":
    """One without containers, with the images of the services and the simulated worker; ended with all it runs."""
    engine = Engine()
    engine.start()
    try:
        engine.clear()
        engine.build_images()
        yield engine
    finally:
        engine.stop()


class Engine:
    def __init__(self) -> None:
        ROOT.mkdir(parents=True, exist_ok=True)
        self.socket = ROOT / "docker.sock"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"

    @property
    def env(self) -> dict[str, str]:
        return {**os.environ, "DOCKER_HOST": self.url, "DOCKER_BUILDKIT": "0", "COMPOSE_DOCKER_CLI_BUILD": "0"}

    def start(self) -> None:
        """Returns when it answers. Containers live on while it is away, and are found again."""
        command = ["dockerd", "--host", self.url, "--data-root", str(ROOT / "data"), "--exec-root", str(ROOT / "exec"),
                   "--pidfile", str(ROOT / "docker.pid"), "--live-restore"]  # fmt: skip
        (ROOT / "docker.pid").unlink(missing_ok=True)
        with (ROOT / "dockerd.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        deadline = time.monotonic() + START_SECONDS
        while self.docker("version", check=False).returncode != 0:
            assert self._process.poll() is None, f"dockerd ended; see {ROOT / 'dockerd.log'}"
            assert time.monotonic() < deadline, f"dockerd does not answer; see {ROOT / 'dockerd.log'}"
            time.sleep(0.2)

    def kill(self) -> None:
        """As by the kernel when memory runs out."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        # Its containerd dies with it. Where nobody waits for it, a zombie keeps its pid, and the next engine would wait
        # for that one to answer.
        (ROOT / "exec" / "containerd" / "containerd.pid").unlink(missing_ok=True)

    def stop(self) -> None:
        """With all its containers."""
        if self._process is None:
            return
        if self._process.poll() is not None:
            self.start()
        self.clear()
        self._process.terminate()
        self._process.wait(timeout=START_SECONDS)

    def clear(self) -> None:
        """No container is left of an earlier test, or of an earlier run that was killed."""
        if names := self.docker("ps", "-aq").stdout.split():
            self.docker("rm", "-f", *names)

    def docker(self, *arguments: str, check: bool = True, **options: Any) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            ["docker", *arguments],
            check=False,
            env=self.env,
            text=True,
            capture_output=True,
            timeout=BUILD_SECONDS,
            **options,
        )
        assert not check or done.returncode == 0, f"docker {' '.join(arguments)}: {done.stderr or done.stdout}"
        return done

    def worker_settings(self, orchestrator: str) -> dict[str, str]:
        """For a platform on this host whose workers are containers here, on a network of their own."""
        self.docker("network", "create", NETWORK, check=False)
        gateway = self.docker("network", "inspect", NETWORK, "-f", "{{(index .IPAM.Config 0).Gateway}}").stdout.strip()
        return {
            # Containers reach the host at their network's own address.
            "HOST": "0.0.0.0",
            "WEBHOOK_URL": f"http://{gateway}:{orchestrator.rpartition(':')[2]}",
            "RUNNER": "docker",
            "DOCKER_HOST": self.url,
            "WORKER_IMAGE": WORKER,
            "WORKER_NETWORK": NETWORK,
            "FLEET_NAME": "fleet-test",
            "WORKER_GRACE_MS": "3000",
        }

    def build_images(self) -> None:
        if self.docker("image", "inspect", BASE, check=False).returncode != 0:
            self._make_base()
        self._build("paceline", SERVICES)
        self._build("worker", WORKER)

    def build_baileys_image(self) -> None:
        self._make_node_base()
        self._build("worker-baileys", BAILEYS_WORKER)

    def _build(self, target: str, tag: str) -> None:
        bases = ["--build-arg", f"BASE={BASE}", "--build-arg", f"NODE_BASE={NODE_BASE}"]
        options = ["--network", "host", *bases, "--target", target, "--tag", tag, "--file", "deploy/Dockerfile"]
        self.docker("build", *options, ".", cwd=PROJECT)

    def _make_base(self) -> None:
        root = ROOT / "root"
        shutil.rmtree(root, ignore_errors=True)
        command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", str(root)]
        done = subprocess.run(command, check=False, text=True, capture_output=True, timeout=BUILD_SECONDS)
        assert done.returncode == 0, done.stdout[-2_000:]
        # A machine that has certificates of its own needs them in a build as well.
        shutil.copy("/etc/ssl/certs/ca-certificates.crt", root / "etc/ssl/certs/ca-certificates.crt")
        packed = subprocess.Popen(["tar", "-C", str(root), "-c", "."], stdout=subprocess.PIPE)
        self.docker("import", "-", BASE, stdin=packed.stdout)
        assert packed.wait() == 0
        shutil.rmtree(root)

    def _make_node_base(self) -> None:
        """Debian's own node is too old. Built each time, so that it follows the machine's; mostly nothing changed."""
        node, npm = (Path(shutil.which(name) or "").resolve() for name in ("node", "npm"))
        with tempfile.TemporaryDirectory() as folder:
            context = Path(folder)
            shutil.copy2(node, context / "node")
            # …/npm/bin/npm-cli.js
            shutil.copytree(npm.parents[1], context / "npm", symlinks=True)
            (context / "Dockerfile").write_text(NODE_DOCKERFILE)
            self.docker("build", "--tag", NODE_BASE, folder)
