"""The worlds by name. The first two choose defaults; the last is run once and chooses nothing."""

from benchmarks.teaching.worlds.paths import PathsWorld
from benchmarks.teaching.worlds.query import QueryWorld
from benchmarks.teaching.worlds.repair import RepairWorld
from benchmarks.teaching.worlds.world import World

WORLDS: dict[str, World] = {world.name: world for world in (RepairWorld(), QueryWorld(), PathsWorld())}
HELD_OUT = "paths"
