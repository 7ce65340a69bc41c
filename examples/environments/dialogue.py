"""An OpenEnv server for tasks with tools, a user and a verdict: the part that adapters share.

An adapter subclasses Dialogue and ends in `app = serve(MyDialogue)`.
"""

from typing import Any, Literal

from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State


class Step(Action):
    type: Literal["list_tools", "call_tool", "message"]
    tool_name: str = ""
    arguments: dict[str, Any] = {}
    content: str = ""
    injected: bool = False  # the attacker of the task is to speak in the result


class Seen(Observation):
    tools: list[dict[str, Any]] | None = None  # name, description, input_schema
    result: Any = None
    error: dict[str, str] | None = None
    injected: bool = False  # the attacker speaks in the result
    messages: list[dict[str, str]] = []  # what the user says next
    verdict: Any = None


class Dialogue(Environment):
    """One attempt at one task. Subclasses define begin, tools, call and message."""

    SUPPORTS_CONCURRENT_SESSIONS = True
    user_token = ""  # opens the endpoint at ASSAY_USER_URL, if a model speaks as the user

    def begin(self, task_id: str) -> Seen:
        raise NotImplementedError

    def tools(self) -> list[dict[str, Any]]:
        raise NotImplementedError

    def call(self, name: str, arguments: dict[str, Any]) -> Seen:
        raise NotImplementedError

    def inject(self, name: str, arguments: dict[str, Any]) -> Seen:
        """Make a call in whose result the attacker of the task speaks, if it has one."""
        return self.call(name, arguments)

    def message(self, content: str) -> Seen:
        """Hear the agent's answer: return what the user says next, or the verdict."""
        raise NotImplementedError

    def reset(self, seed=None, episode_id=None, task_id: str = "", user_token: str = "") -> Seen:
        self._state, self.user_token = State(episode_id=episode_id), user_token
        return self.begin(task_id)

    def step(self, action: Step, timeout_s=None, **kwargs) -> Seen:
        if action.type == "list_tools":
            return Seen(tools=self.tools())
        if action.type == "call_tool":
            call = self.inject if action.injected else self.call
            return call(action.tool_name, action.arguments)
        return self.message(action.content)

    @property
    def state(self) -> State:
        return getattr(self, "_state", State())


def failed(text: str) -> Seen:
    """The observation of a call that the tool refused."""
    return Seen(error={"error_type": "execution_error", "message": text})


def user(text: str) -> Seen:
    return Seen(messages=[{"role": "user", "content": text}])


def judged(success: bool, verdict: Any = None) -> Seen:
    return Seen(done=True, reward=1.0 if success else 0.0, verdict=verdict)


def serve(dialogue: type[Dialogue], sessions: int = 64):
    return create_fastapi_app(dialogue, Step, Seen, max_concurrent_envs=sessions)
