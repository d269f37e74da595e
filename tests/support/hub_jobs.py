"""Jobs of the Hub on loopback: submitted, listed by label, inspected, cancelled; none is run."""

import json
import re
from typing import Any


class JobRoutes:
    """Mixed into the handler: `jobs` answers what it knows and says whether it did."""

    def jobs(self: Any, path: str, query: dict[str, list[str]], body: bytes) -> bool:
        found = re.fullmatch(r"/api/jobs/([^/]+)(?:/([^/]+)(?:/(cancel|logs))?)?", path)
        if found is None:
            return False
        namespace, job_id, verb = found.groups()
        user = self.hub.users.get(self.request_.token) or {}
        if user.get("role") == "read" or not user:
            self._error(403, "Forbidden: you must use a write token")
        elif job_id is None and self.command == "POST":
            job = {"id": f"job{len(self.hub.jobs)}", "stage": "SCHEDULING", "namespace": namespace}
            self.hub.jobs.append(job | {"spec": json.loads(body)})
            self._json(_shown(self.hub.jobs[-1]))
        elif job_id is None:
            wanted = [label.partition("=")[::2] for label in query.get("label", [])]
            self._json(
                [
                    _shown(job)
                    for job in self.hub.jobs
                    if all(job["spec"]["labels"].get(name) == value for name, value in wanted)
                ]
            )
        else:
            [job] = [each for each in self.hub.jobs if each["id"] == job_id]
            if verb == "cancel":
                job["stage"] = "CANCELED"
            self._logs() if verb == "logs" else self._json(_shown(job))
        return True

    def _logs(self: Any) -> None:
        lines = ("===== Job started at now =====", "step 1 of 2", "step 2 of 2")
        events = "".join(
            f"data: {json.dumps({'data': line, 'timestamp': '2026-11-22T00:00:00.000Z'})}\n\n"
            for line in lines
        )
        self._send(200, events.encode(), {"Content-Type": "text/event-stream"})


def _shown(job: dict[str, Any]) -> dict[str, Any]:
    """What the Hub says of a job: names of secrets, never their values."""
    spec = job["spec"]
    return {
        "id": job["id"],
        "createdAt": "2026-11-22T00:00:00.000Z",
        "dockerImage": spec["dockerImage"],
        "command": spec["command"],
        "arguments": spec["arguments"],
        "environment": spec["environment"],
        "secrets": dict.fromkeys(spec.get("secrets", {}), ""),
        "flavor": spec["flavor"],
        "labels": spec["labels"],
        "status": {"stage": job["stage"], "message": None},
        "owner": {"id": "0" * 24, "name": job["namespace"], "type": "user"},
    }
