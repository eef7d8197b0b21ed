// What `bench/intake.py` compares with: Express and ioredis taking the same single send, with the same reads and the same script.
// node intake.js <port> <redis socket> <script file> <phones>
const { readFileSync } = require('fs')
const { createHash, randomBytes, timingSafeEqual } = require('crypto')
const express = require('express')
const Redis = require('ioredis')
const { pack } = require('msgpackr')

const [port, socket, script, phones] = process.argv.slice(2)
const redis = new Redis({ path: socket })
redis.defineCommand('acceptSend', { numberOfKeys: 0, lua: readFileSync(script, 'utf8') })
const key = createHash('sha256').update('a-key-for-the-benchmark-alone').digest()
let turn = 0

const app = express()
app.use(express.json())
app.post('/api/v1/send', async (request, response) => {
  const given = createHash('sha256').update(request.get('x-api-key') || '').digest()
  if (!timingSafeEqual(given, key)) return response.status(401).json({ error: { code: 'UNAUTHORIZED' } })
  const { to, message } = request.body
  if (typeof to !== 'string' || !/^\+?\d{7,15}$/.test(to)) return response.status(400).json({ error: { code: 'INVALID_NUMBER', field: 'to' } })
  if (typeof message !== 'string' || !message || message.length > 4096) return response.status(400).json({ error: { code: 'INVALID_REQUEST', field: 'message' } })
  if (await redis.zscore('suppressions', to)) return response.status(422).json({ error: { code: 'SUPPRESSED', field: 'to' } })
  await redis.get(`sticky:${to}`)
  const now = Date.now()
  const job = randomBytes(13).toString('hex').toUpperCase()
  const phone = `97254${String(turn++ % Number(phones)).padStart(7, '0')}`
  const body = { jobId: job, total: 1, text: message, acceptedAt: now, acceptedBy: 'bench', validitySeconds: 86400, single: true }
  const order = {
    job, json: JSON.stringify(body), task: `${job}:0`, contact: to, phone, to, expiresAt: now + 86400000, priority: 1, limit: 1e9, now,
  }
  const answer = JSON.parse((await redis.acceptSend(pack({ orders: [order] })))[0])
  if (answer.code !== 'OK') return response.status(429).json({ error: { code: answer.code } })
  response.json({ queued: true, messageId: `${job}:0`, position: answer.position, estimatedDelivery: now + 3000 })
})
app.listen(Number(port), '127.0.0.1')
