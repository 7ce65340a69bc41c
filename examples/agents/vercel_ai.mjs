// The Vercel AI SDK as an agent of Assay: npm install ai @ai-sdk/openai @ai-sdk/mcp

import { readFileSync } from "node:fs";
import { createMCPClient } from "@ai-sdk/mcp";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, stepCountIs } from "ai";

const client = await createMCPClient({
  transport: {
    type: "http",
    url: process.env.ASSAY_MCP_URL,
    headers: { Authorization: `Bearer ${process.env.ASSAY_TOKEN}` },
  },
});
const { text } = await generateText({
  model: createOpenAI().chat(process.env.ASSAY_MODEL),
  tools: await client.tools(),
  prompt: readFileSync(0, "utf8"),
  stopWhen: stepCountIs(40),
});
await client.close();
console.log(text);
