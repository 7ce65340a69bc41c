// The OpenAI Agents SDK for TypeScript as an agent of Assay: npm install @openai/agents

import { readFileSync } from "node:fs";
import { Agent, MCPServerStreamableHttp, run, setTracingDisabled } from "@openai/agents";

setTracingDisabled(true);
const server = new MCPServerStreamableHttp({
  url: process.env.ASSAY_MCP_URL,
  requestInit: { headers: { Authorization: `Bearer ${process.env.ASSAY_TOKEN}` } },
});
await server.connect();
const agent = new Agent({ name: "worker", model: process.env.ASSAY_MODEL, mcpServers: [server] });
const result = await run(agent, readFileSync(0, "utf8"), { maxTurns: 40 });
await server.close();
console.log(result.finalOutput);
