// What `bench/peers.py` compares with: BullMQ completing tasks of 200 bytes, one worker, concurrency 100, nothing to do in each.
// node bullmq.js <redis socket> <tasks>; says `taking` when all are added and the worker is connected, `done` when the last is completed.
const { Queue, Worker } = require('bullmq')

const [socket, count] = process.argv.slice(2)
const connection = { path: socket, maxRetriesPerRequest: null }

async function main() {
  const queue = new Queue('bench', { connection })
  const text = 'x'.repeat(200)
  for (let start = 0; start < Number(count); start += 1000) {
    await queue.addBulk(Array.from({ length: Math.min(1000, Number(count) - start) }, () => ({ name: 'send', data: { text } })))
  }
  let done = 0
  const worker = new Worker('bench', async () => {}, { connection, concurrency: 100, autorun: false })
  worker.on('completed', () => { if (++done === Number(count)) console.log('done') })
  await worker.waitUntilReady()
  console.log('taking')
  await worker.run()
}
main()
