// GitHub Copilot's CLI as an agent of Assay, without a login: npm install @github/copilot
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const { ASSAY_MCP_URL, ASSAY_MODEL, ASSAY_TOKEN, OPENAI_BASE_URL, TMPDIR } = process.env
const tools = {
  type: 'http', url: ASSAY_MCP_URL, tools: ['*'], headers: { Authorization: `Bearer ${ASSAY_TOKEN}` },
}
const copilot = fileURLToPath(new URL('node_modules/.bin/copilot', import.meta.url))
const { status } = spawnSync(copilot, [
  '--silent', '--allow-all-tools', '--no-custom-instructions', '--disable-builtin-mcps',
  '--additional-mcp-config', JSON.stringify({ mcpServers: { assay: tools } }),
], {
  stdio: 'inherit', // the prompt is its input
  env: {
    ...process.env,
    COPILOT_HOME: `${TMPDIR}/copilot`,
    COPILOT_OFFLINE: 'true', // neither a login nor updates
    COPILOT_MODEL: ASSAY_MODEL,
    COPILOT_PROVIDER_BASE_URL: OPENAI_BASE_URL,
    COPILOT_PROVIDER_API_KEY: ASSAY_TOKEN,
  },
})
process.exit(status ?? 1)
