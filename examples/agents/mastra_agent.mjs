// Mastra as an agent of Assay: npm install @mastra/core @mastra/mcp @ai-sdk/openai zod
// The provider can be that of AI SDK 5 or later, such as ai-sdk-5-openai.

import { readFileSync } from "node:fs";
import { Agent } from "@mastra/core/agent";
import { MCPClient } from "@mastra/mcp";

const { createOpenAI } = await import(process.argv[2] ?? "@ai-sdk/openai");
const client = new MCPClient({
  servers: {
    assay: {
      url: new URL(process.env.ASSAY_MCP_URL),
      requestInit: { headers: { Authorization: `Bearer ${process.env.ASSAY_TOKEN}` } },
    },
  },
});
const { assay } = await client.listToolsets(); // under their own names
const agent = new Agent({
  id: "worker",
  name: "worker",
  instructions: "",
  model: createOpenAI().chat(process.env.ASSAY_MODEL),
});
const result = await agent.generate(readFileSync(0, "utf8"), {
  toolsets: { assay },
  maxSteps: 40,
});
await client.disconnect();
console.log(result.text);
