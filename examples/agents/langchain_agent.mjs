// LangChain.js as an agent of Assay:
// npm install langchain @langchain/core @langchain/langgraph @langchain/openai @langchain/mcp-adapters

import { readFileSync } from "node:fs";
import { MultiServerMCPClient } from "@langchain/mcp-adapters";
import { ChatOpenAI } from "@langchain/openai";
import { createAgent, toolErrorMiddleware } from "langchain";

const client = new MultiServerMCPClient({
  assay: {
    transport: "http",
    url: process.env.ASSAY_MCP_URL,
    headers: { Authorization: `Bearer ${process.env.ASSAY_TOKEN}` },
  },
});
const agent = createAgent({
  model: new ChatOpenAI({ model: process.env.ASSAY_MODEL }),
  tools: await client.getTools(),
});
const result = await agent.invoke(
  { messages: [{ role: "user", content: readFileSync(0, "utf8") }] },
  { recursionLimit: 80 },
);
await client.close();
console.log(result.messages.at(-1).text);
