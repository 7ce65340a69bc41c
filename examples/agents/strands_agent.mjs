// Strands Agents for JavaScript as an agent of Assay: npm install @strands-agents/sdk openai
// Its argument is the protocol, if it is not Responses: chat, by which version 1.19 carries out only
// the last call of a reply.
import { readFileSync } from 'node:fs'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { Agent, McpClient } from '@strands-agents/sdk'
import { OpenAIModel } from '@strands-agents/sdk/models/openai'

const { ASSAY_MCP_URL, ASSAY_MODEL, ASSAY_TOKEN } = process.env
const tools = new McpClient({
  transport: new StreamableHTTPClientTransport(new URL(ASSAY_MCP_URL), {
    requestInit: { headers: { Authorization: `Bearer ${ASSAY_TOKEN}` } },
  }),
})
const model = new OpenAIModel({ api: process.argv[2] ?? 'responses', modelId: ASSAY_MODEL })
const agent = new Agent({ model, tools: [tools], printer: false })
const result = await agent.invoke(readFileSync(0, 'utf8'))
console.log(String(result))
await tools.disconnect()
