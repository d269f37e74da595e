"""Where the label of a pair comes from."""

from typing import Literal

LabelSource = Literal["teachers", "hindsight", "siblings"]
