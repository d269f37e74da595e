"""Find the agent that an event of a sample belongs to: the main one, one that a tool started, or a scorer.

Later versions put events into spans that name their parents; early ones put events of an agent into the event
of the tool that ran it, and mark with steps what is a scorer's.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tracemill.ingesters.common.openai_messages import as_mapping, first_text
from tracemill.ingesters.inspect_ai.messages import content_list

_SCORERS = ("scorer", "scorers")


@dataclass(frozen=True, slots=True)
class AgentIdentity:
    """An agent of a sample: its key ("" for the main one), its starting call, and whether it is a scorer."""

    key: str = ""
    call_id: str | None = None
    scores: bool = False


_MAIN = AgentIdentity()


@dataclass(slots=True)
class SampleAgents:
    """The spans of a sample by id, and calls by the tool or agent span that they began."""

    spans: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    calls: dict[str, str] = field(default_factory=dict)
    found: dict[str, AgentIdentity] = field(default_factory=dict)

    @classmethod
    def of(cls, events: Sequence[Any]) -> "SampleAgents":
        """Build it from a sample's events."""
        agents = cls()
        for event in map(as_mapping, events):
            named = first_text(event.get("id"))
            if event.get("event") == "span_begin" and named:
                agents.spans[named] = event
            elif event.get("event") == "tool" and named:
                for span in (event.get("span_id"), event.get("agent_span_id")):
                    if isinstance(span, str):
                        agents.calls.setdefault(span, named)
        return agents

    def walk(
        self, events: Sequence[Any], within: AgentIdentity = _MAIN
    ) -> Iterator[tuple[Mapping[str, Any], AgentIdentity]]:
        """Yield every event with its agent; nested events come after their parent."""
        scoring = 0
        for event in map(as_mapping, events):
            if event.get("event") == "step" and event.get("type") in _SCORERS:
                scoring += 1 if event.get("action") == "begin" else -1
            agent = self._agent_of(event.get("span_id")) if within == _MAIN else within
            agent = replace(agent, scores=True) if scoring > 0 else agent
            yield event, agent
            nested = content_list(event.get("events"))
            inner = agent
            if nested and event.get("event") == "tool" and (named := first_text(event.get("id"))):
                inner = AgentIdentity(named, named, agent.scores)
            yield from self.walk(nested, inner)

    def _agent_of(self, span: Any) -> AgentIdentity:
        """Return the agent of a span's events: an agent inside another one, or inside a tool, is separate."""
        if not isinstance(span, str):
            return _MAIN
        if span not in self.found:
            path = self._path(span)
            kinds = [self.spans[each].get("type") for each in path]
            agents = [each for each in path if self.spans[each].get("type") == "agent"]
            tools = [each for each in path if self.spans[each].get("type") == "tool"]
            key, call = "", None
            if len(agents) > 1 or tools:
                key = agents[0] if agents else tools[0]
                call = self.calls.get(key) or next((self.calls[t] for t in tools if t in self.calls), None)
            self.found[span] = AgentIdentity(key, call, any(kind in _SCORERS for kind in kinds))
        return self.found[span]

    def _path(self, span: Any) -> list[str]:
        """Return a span and those around it, the innermost first."""
        path: list[str] = []
        while isinstance(span, str) and span in self.spans and span not in path:
            path.append(span)
            span = self.spans[span].get("parent_id")
        return path
