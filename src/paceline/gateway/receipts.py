"""What a caller gets for work that was accepted, and how that answer is kept for a request that is repeated."""

import msgspec

from paceline.domain.ids import task_id
from paceline.domain.jobs import Job
from paceline.gateway.picture import Estimate
from paceline.gateway.schemas import BatchAccepted, JobAccepted, SendAccepted
from paceline.gateway.sifting import Sift
from paceline.store import keys
from paceline.store.jobs import Idem

_encode = msgspec.json.Encoder().encode


def idem(by: str, idem_key: str | None, answer: msgspec.Struct) -> Idem | None:
    if idem_key is None:
        return None
    return Idem(keys.idempotency(by, idem_key), _encode(answer).decode())


def job_receipt(job: Job, sift: Sift, total: int, expected: Estimate) -> JobAccepted:
    return JobAccepted(
        job_id=job.job_id,
        total=total,
        accepted=job.total,
        suppressed=sift.suppressed,
        duplicates=sift.duplicates,
        rejected=sift.rejected,
        will_expire=expected.will_expire,
        status_url=f"/v1/jobs/{job.job_id}",
        estimated_completion=expected.finish_ms,
    )


def repeated_job(job: Job) -> JobAccepted:
    """For a request that is repeated after a crash: the job it made is there, the details of its contacts are not."""
    return JobAccepted(
        job_id=job.job_id,
        total=job.total,
        accepted=job.total,
        suppressed=0,
        duplicates=0,
        rejected=[],
        will_expire=0,
        status_url=f"/v1/jobs/{job.job_id}",
        estimated_completion=None,
    )


def batch_receipt(job: Job, suppressed: int, expected: Estimate) -> BatchAccepted:
    return BatchAccepted(
        queued=job.total, job_id=job.job_id, suppressed=suppressed, estimated_completion=expected.finish_ms
    )


def repeated_batch(job: Job) -> BatchAccepted:
    return BatchAccepted(queued=job.total, job_id=job.job_id, suppressed=0, estimated_completion=None)


def send_receipt(job_id: str, position: int | None, when: int | None) -> SendAccepted:
    return SendAccepted(message_id=task_id(job_id, 0), position=position, estimated_delivery=when)
