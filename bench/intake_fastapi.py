"""What `intake.py` compares with: FastAPI and redis-py taking the same single send, with the same reads and the same
script. python intake_fastapi.py <port> <redis socket> <script file> <phones>"""

import hashlib
import hmac
import itertools
import json
import secrets
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import msgspec
import redis.asyncio as aioredis
import uvicorn
from fastapi import FastAPI, Header, HTTPException
from pydantic import BaseModel, Field

PORT, SOCKET, SCRIPT, PHONES = sys.argv[1:]
KEY = hashlib.sha256(b"a-key-for-the-benchmark-alone").digest()
app = FastAPI()
client = aioredis.Redis(unix_socket_path=SOCKET, decode_responses=True, max_connections=1_000)
accept_send = client.register_script(Path(SCRIPT).read_text())
turns = itertools.count()


class Send(BaseModel):
    to: Annotated[str, Field(pattern=r"^\+?\d{7,15}$")]
    message: Annotated[str, Field(min_length=1, max_length=4096)]


@app.post("/api/v1/send")
async def send(asked: Send, x_api_key: Annotated[str, Header()] = "") -> dict[str, Any]:
    if not hmac.compare_digest(hashlib.sha256(x_api_key.encode()).digest(), KEY):
        raise HTTPException(401, "UNAUTHORIZED")
    if await client.zscore("suppressions", asked.to):
        raise HTTPException(422, "SUPPRESSED")
    await client.get(f"sticky:{asked.to}")
    now, job = time.time_ns() // 1_000_000, secrets.token_hex(13).upper()
    body = {"jobId": job, "total": 1, "text": asked.message, "acceptedAt": now, "acceptedBy": "bench",
            "validitySeconds": 86_400, "single": True}  # fmt: skip
    order = {
        "job": job, "json": json.dumps(body), "task": f"{job}:0", "contact": asked.to, "to": asked.to,
        "phone": f"97254{next(turns) % int(PHONES):07d}", "expiresAt": now + 86_400_000, "priority": 1,
        "limit": 1_000_000_000, "now": now,
    }  # fmt: skip
    answer = json.loads((await accept_send(args=[msgspec.msgpack.encode({"orders": [order]})]))[0])
    if answer["code"] != "OK":
        raise HTTPException(429, answer["code"])
    return {"queued": True, "messageId": f"{job}:0", "position": answer["position"], "estimatedDelivery": now + 3_000}


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(PORT), access_log=False, log_level="warning")
