package assay

// An AgentState is the activity of a foreign agent.
type AgentState string

const (
	// AgentStarting is an agent that has not sent a request yet.
	AgentStarting AgentState = "starting"
	// AgentThinking is an agent that works on its own.
	AgentThinking AgentState = "thinking"
	// AgentAsking is an agent that waits for its model.
	AgentAsking AgentState = "asking"
	// AgentCalling is an agent that waits for a tool.
	AgentCalling AgentState = "calling"
	// AgentEnding is an agent that is being stopped.
	AgentEnding AgentState = "ending"
)

// AgentStates has all states in the order of an attempt.
var AgentStates = []AgentState{
	AgentStarting, AgentThinking, AgentAsking, AgentCalling, AgentEnding,
}
