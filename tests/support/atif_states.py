"""Rebuild prompts and actions from an ATIF trajectory, straight from its JSON."""

from typing import Any


def messages_and_cuts(trajectory: dict[str, Any]) -> tuple[list[dict[str, Any]], list[int]]:
    """Return the messages in order, and the places of the agent's actions among them."""
    messages: list[dict[str, Any]] = []
    cuts: list[int] = []
    roles = {"system": "system", "user": "user", "agent": "assistant"}
    for step in trajectory["steps"]:
        results = step.get("observation", {}).get("results", [])
        if not (step["source"] == "system" and step["message"] == "" and results):
            if step["source"] == "agent" and not step.get("is_copied_context"):
                cuts.append(len(messages))
            calls = [
                (call["tool_call_id"], call["function_name"], arguments_of(call))
                for call in step.get("tool_calls", [])
            ]
            reasoning = step.get("reasoning_content")
            said = {"role": roles[step["source"]], "content": step["message"], "calls": calls}
            messages.append({**said, "answers": None, "is_error": None, "reasoning": reasoning})
        for result in results:
            extra = result.get("extra", {})
            answers = result.get("source_call_id", extra.get("tool_call_id"))
            told = {"role": "tool", "content": result["content"], "calls": [], "answers": answers}
            messages.append({**told, "is_error": extra.get("is_error"), "reasoning": None})
    return messages, cuts


def arguments_of(call: dict[str, Any]) -> Any:
    """Return the exact text of a call's arguments where it is kept, else their object."""
    return call.get("extra", {}).get("arguments", call["arguments"])


def faults_of(trajectory: dict[str, Any]) -> list[str]:
    """Return which rules of ATIF 1.7 a trajectory breaks."""
    root = {"schema_version", "session_id", "trajectory_id", "agent", "steps", "final_metrics", "extra"}
    keys = {"step_id", "source", "message", "timestamp", "model_name", "reasoning_content", "tool_calls"}
    keys |= {"observation", "metrics", "is_copied_context", "extra"}
    agent_only = {"model_name", "reasoning_content", "tool_calls", "metrics"}
    faults = [f"root {key}" for key in trajectory.keys() - root - {"continued_trajectory_ref", "notes"}]
    faults += [f"agent.{key}" for key in ("name", "version") if not trajectory["agent"].get(key)]
    faults += ["version"] * (trajectory["schema_version"] != "ATIF-v1.7") + ["no steps"] * (
        not trajectory["steps"]
    )
    for number, step in enumerate(trajectory["steps"], 1):
        faults += [f"step {key}" for key in step.keys() - keys]
        faults += ["step_id"] * (step["step_id"] != number)
        faults += [f"{key} of no agent" for key in step.keys() & agent_only if step["source"] != "agent"]
        called = {call["tool_call_id"] for call in step.get("tool_calls", [])}
        faults += [
            "arguments" for call in step.get("tool_calls", []) if not isinstance(call["arguments"], dict)
        ]
        for result in step.get("observation", {}).get("results", []):
            faults += ["source_call_id"] * (result.get("source_call_id") not in called | {None})
    return faults
