"""The container of one worker, as SPEC §6 has it, and what keeps it from doing more than it must.

Pure but for `prepare`, which makes the folders it mounts. `docker.py` hands the result to the engine.
"""

import os
from pathlib import Path
from typing import Any, Self

import msgspec

from paceline.orchestrator.runners.base import WorkerSpec
from paceline.settings import Settings

NAME = "wa_session_"
FLEET = "paceline.fleet"
SESSION = "paceline.session"
INSTANCE = "paceline.instance"
GENERATION = "paceline.generation"

HOME = "/app"
"""Below it lie a worker's own volume and nothing else that it could write to."""
LOG_LIMITS = {"max-size": "10m", "max-file": "3"}
TMP_OPTIONS = "rw,noexec,nosuid,nodev,size=16m"
BAILEYS_TMP_OPTIONS = TMP_OPTIONS.replace("16m", "64m")
"""Its library encrypts a file there before the upload, and the largest has 16 MB."""


class Containers(msgspec.Struct, frozen=True, kw_only=True):
    """What all containers of one fleet have in common."""

    fleet: str
    image: str
    baileys_image: str
    network: str
    user: str
    memory_bytes: int
    pids: int
    data: Path
    """Where we see the data directory."""
    host_data: Path
    """Where the engine sees it."""
    grace_ms: int = 10_000

    @classmethod
    def of(cls, settings: Settings) -> Self:
        data = settings.data.expanduser().absolute()
        return cls(
            fleet=settings.fleet_name,
            image=settings.worker_image,
            baileys_image=settings.baileys_worker_image,
            network=settings.worker_network,
            user=settings.worker_user,
            memory_bytes=settings.worker_memory_mb * 1024 * 1024,
            pids=settings.worker_pids,
            data=data,
            host_data=settings.worker_data_path or data,
            grace_ms=settings.worker_grace_ms,
        )

    def name(self, session_id: str) -> str:
        return f"{NAME}{session_id}"

    def labels(self, spec: WorkerSpec) -> dict[str, str]:
        return {
            FLEET: self.fleet,
            SESSION: spec.session_id,
            INSTANCE: spec.instance,
            GENERATION: str(spec.generation),
        }

    def config(self, spec: WorkerSpec) -> dict[str, Any]:
        """What the engine is asked to create."""
        told = {"PACELINE_DATA": HOME, **spec.environment()}
        is_baileys = spec.driver == "baileys"
        return {
            "Image": self.baileys_image if is_baileys else self.image,
            "User": self.user,
            "Env": [f"{name}={value}" for name, value in told.items()],
            "Labels": self.labels(spec),
            "StopSignal": "SIGTERM",
            "StopTimeout": seconds(self.grace_ms),
            "HostConfig": {
                "Binds": self.binds(spec),
                "NetworkMode": self.network,
                "RestartPolicy": {"Name": "unless-stopped"},
                "ReadonlyRootfs": True,
                "Tmpfs": {"/tmp": BAILEYS_TMP_OPTIONS if is_baileys else TMP_OPTIONS},
                "CapDrop": ["ALL"],
                "SecurityOpt": ["no-new-privileges:true"],
                "Privileged": False,
                "Memory": self.memory_bytes,
                # The same: no swap on top.
                "MemorySwap": self.memory_bytes,
                "PidsLimit": self.pids,
                # Somebody has to wait for what a driver starts.
                "Init": True,
                "LogConfig": {"Type": "json-file", "Config": LOG_LIMITS},
            },
        }

    def binds(self, spec: WorkerSpec) -> list[str]:
        own = f"sessions/{spec.session_id}"
        mounts = [f"{self.host_data}/{own}:{HOME}/{own}:rw"]
        if spec.driver == "simulated":
            # The simulated WhatsApp is no part of the worker; its ledger and its moods lie outside of the volume.
            mounts.append(f"{self.host_data}/ledger:{HOME}/ledger:rw")
            if (self.data / "simulated.toml").exists():
                mounts.append(f"{self.host_data}/simulated.toml:{HOME}/simulated.toml:ro")
        return mounts

    def prepare(self, spec: WorkerSpec) -> None:
        """The engine would make missing folders as root's, and the worker could not write there. Raises OSError."""
        volume, ledger = self.data / "sessions" / spec.session_id, self.data / "ledger"
        volume.mkdir(mode=0o700, parents=True, exist_ok=True)
        theirs = [volume, *volume.iterdir()]
        if spec.driver == "simulated":
            ledger.mkdir(mode=0o700, parents=True, exist_ok=True)
            theirs += [ledger, *ledger.glob(f"{spec.session_id}.*")]
        # An orchestrator that is not root runs as the workers' user, or whoever set that up has seen to it.
        if os.geteuid() == 0:
            uid, _, gid = self.user.partition(":")
            for path in theirs:
                # What a worker made before as a process of this machine was made by us.
                os.chown(path, int(uid), int(gid) if gid else -1, follow_symlinks=False)


def seconds(ms: int) -> int:
    """Rounded up: a grace that is cut short would kill a message in flight."""
    return -(-ms // 1_000)
