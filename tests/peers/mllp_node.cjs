// The two receivers of `mllp_node.py`, which is the manual: node mllp_node.cjs LIBRARY PORT [LOG]

const fs = require('node:fs')

const [library, port, log] = process.argv.slice(2)
const seen = new Set()

/** The code that a message asks for in its control id, or null for silence. */
function code(controlId) {
  if (log) fs.appendFileSync(log, controlId + '\n')
  const isFirst = !seen.has(controlId)
  seen.add(controlId)
  const asked = ['AE', 'AR', 'MUTE'].find((code) => controlId.includes('-' + code))
  if (!asked || (!isFirst && controlId.includes('-ONCE-'))) return 'AA'
  return asked === 'MUTE' ? null : asked
}

if (library === 'node-hl7-server') {
  const { Server } = require('node-hl7-server')
  const server = new Server({ bindAddress: '127.0.0.1' })
  server.createInbound({ port: Number(port) }, async (request, response) => {
    const says = code(request.getMessage().get('MSH.10').toString())
    if (says) await response.sendResponse(says)
  })
} else {
  const app = require('simple-hl7').tcp()
  app.use((request, response) => {
    // Its fields are counted from MSH-3 as 1.
    const says = code(request.msg.header.getField(8).toString())
    if (!says) return
    response.ack.getSegment('MSA').setField(1, says)
    response.end()
  })
  app.use((error, request, response, next) => console.error(error))
  app.start(Number(port))
}
