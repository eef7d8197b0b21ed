"""The workers: what each needs, who starts it, what it may take of its host."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator

from paceline.settings.section import AnyCase, HttpUrl, Milliseconds, Section


class Inventory(Section):
    """Proxies and profiles."""

    max_sessions_per_proxy: Annotated[int, Field(ge=1, le=1_000)] = 4
    """How many sessions with a worker share one proxy. More numbers behind one address look like what they are."""

    max_sessions_per_phone: Annotated[int, Field(ge=1, le=4)] = 4
    """How many sessions one number has. WhatsApp links at most four devices to an account."""

    inventory_low: Annotated[int, Field(ge=0, le=100_000)] = 5
    """With fewer proxies that have room, or fewer unused profiles, than this you are told (`INVENTORY_LOW`), once
    until there are enough again; at none you are told in any case. 0: only at none."""


class Workers(Section):
    """Workers and their runner."""

    runner: Annotated[Literal["process", "docker", "external"], AnyCase] = "process"
    """Who starts the workers: `process`, on this machine, which outlive the orchestrator; `docker`, a container for
    each session; `external`, somebody else."""

    provisioning_interval_ms: Annotated[int, Field(ge=100, le=600_000)] = 2_000
    """How often what runs is compared with what is wanted, in ms. Changes are acted on at once; this finds what
    died."""

    webhook_url: HttpUrl | None = None
    """Base address under which workers reach the orchestrator. Unset, it is `ORCHESTRATOR_URL`; in containers
    `localhost` is the worker itself."""

    enable_keep_alive: bool = True
    """Whether idle workers say every 15 s that they live. Without it a quiet number looks like a dead one."""

    worker_grace_ms: Annotated[int, Field(ge=100, le=600_000)] = 10_000
    """How long a worker has to end when asked to, in ms, before it is killed: time for a message in flight to come to
    its end."""

    worker_starts_max: Annotated[int, Field(ge=1, le=1_000)] = 10
    """After so many starts in a row that did not get healthy a session is FAILED until an operator restarts it. The
    pauses between them double from 1 s to 5 min."""

    worker_healthy_ms: Annotated[int, Field(ge=0, le=3_600_000)] = 60_000
    """A worker that was connected, or showed its code, and lived so many ms was healthy: when it ends, the next starts
    at once and the count begins anew. One that dies sooner every time is a crash loop, however often it connected."""

    worker_orphan_ms: Milliseconds = 0
    """After so many ms without an answer of the orchestrator a worker ends by itself; 0 is never. `paceline up` uses
    30 s, so that killing it leaves nothing behind."""

    stop_workers: bool = False
    """Whether the orchestrator ends its workers when it is asked to stop, as `paceline up` wants. Else they go on, and
    the next orchestrator finds them."""

    fleet_name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")] = "paceline"
    """Which containers are ours, as a label: two installations on one Docker engine need two names."""

    worker_image: Annotated[str, Field(min_length=1, max_length=255)] = "whatsapp-worker-image:1.0.0"
    """The image of a worker's container."""

    baileys_worker_image: Annotated[str, Field(min_length=1, max_length=255)] = "whatsapp-worker-baileys:1.0.0"
    """The image of the container of a `baileys` worker, which is a program for Node.js."""

    baileys_path: Path | None = None
    """Where the built `worker-baileys` lies, for `RUNNER=process`. Unset, it is that of the repository this runs from.
    Built by `tools/ensure-node`."""

    whatsapp_url: str | None = None
    """For tests: the server that `baileys` workers speak to instead of WhatsApp's, `wss://`, or `ws://` on loopback.
    `{session}` and `{phone}` in it are filled in. `paceline up --fake-whatsapp` sets it."""

    whatsapp_version: Annotated[str | None, Field(pattern=r"^\d{1,6}\.\d{1,6}\.\d{1,12}$")] = None
    """The version of WhatsApp's web client that `baileys` workers say they are, such as `2.3000.1`, for when the
    built-in one is answered with 405."""

    worker_network: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$")] = "paceline-workers"
    """The Docker network that workers are on, and nobody else but the orchestrator. Made if it is not there."""

    worker_user: Annotated[str, Field(pattern=r"^[1-9][0-9]{0,9}(:[0-9]{1,10})?$")] = "10001:10001"
    """User and group of the processes in a worker's container, as numbers; never root. The worker's volume must be
    theirs."""

    worker_memory_mb: Annotated[int, Field(ge=32, le=65_536)] = 512
    """Memory a worker's container may use, in MB, without swap. A worker needs about 60, one with a WhatsApp client of
    its own about 200."""

    worker_pids: Annotated[int, Field(ge=8, le=10_000)] = 128
    """Processes and threads a worker's container may have."""

    worker_data_path: Path | None = None
    """`PACELINE_DATA` as the Docker engine sees it. Unset, the same path: an orchestrator in a container has to say
    where its data lies on the host."""

    docker_host: Annotated[str, Field(min_length=1, max_length=1_024)] = "unix:///var/run/docker.sock"
    """Where the Docker engine answers: `unix://`, `tcp://` or `http(s)://`. Whoever may use it is root on its host."""

    @property
    def baileys_folder(self) -> Path:
        beside_us = Path(__file__).resolve().parents[3] / "worker-baileys"
        return self.baileys_path.expanduser().absolute() if self.baileys_path else beside_us

    @field_validator("whatsapp_url")
    @classmethod
    def _websocket_scheme(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("wss://", "ws://127.0.0.1", "ws://localhost", "ws://[::1]")):
            raise ValueError("must start with wss://, or with ws:// on loopback")
        return value
