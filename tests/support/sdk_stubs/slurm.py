"""Stand-ins for sbatch, sacct and scancel: jobs and calls in the folder `$SLURM_STUB`; nothing is run."""

import json
import os
import sys
from pathlib import Path

STUB = Path(os.environ["SLURM_STUB"])
JOBS = STUB / "jobs.json"
jobs = json.loads(JOBS.read_text()) if JOBS.exists() else {}
name, arguments = Path(sys.argv[1]).name, sys.argv[2:]
options = dict(each.partition("=")[::2] for each in arguments if each.startswith("--"))
with (STUB / "calls.jsonl").open("a") as calls:
    calls.write(json.dumps([name, *arguments]) + "\n")
if (STUB / "refuses").exists():
    sys.exit(f"{name}: error: Unable to contact slurm controller (connect failure)")
if name == "sbatch":
    job_id = str(4000 + len(jobs))
    jobs[job_id] = {
        "name": options["--job-name"],
        "state": "PENDING",
        "script": Path(arguments[-1]).read_text(),
    }
    sys.stdout.write(f"{job_id};cluster\n")
elif name == "sacct":
    for job_id, job in jobs.items():
        if options.get("--name", job["name"]) == job["name"] and options.get("--jobs", job_id) == job_id:
            sys.stdout.write((job_id if options["--format"] == "JobID" else job["state"]) + "\n")
else:
    jobs[arguments[0]]["state"] = "CANCELLED by 1000"
JOBS.write_text(json.dumps(jobs))
