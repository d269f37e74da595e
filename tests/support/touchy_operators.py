"""data-juicer operators that go wrong as a row tells them to."""

from plain_pairs import plain_pair

from tracemill.records.message import Message
from tracemill.records.pair import DPOPair

OPERATORS = """
import os, signal, sys, time
from data_juicer.ops.base_op import OPERATORS, Filter
from data_juicer.utils.constant import Fields


@OPERATORS.register_module("touchy_filter")
class TouchyFilter(Filter):
    _batched_op = True

    def compute_stats_batched(self, samples):
        for text, stats in zip(samples[self.text_key], samples[Fields.stats]):
            print("noise on stdout")
            if "boom" in text:
                raise KeyError(text)
            if "exit" in text:
                os._exit(7)
            if "kill" in text:
                os.kill(os.getpid(), signal.SIGKILL)
            if "hang" in text:
                time.sleep(60)
            stats["good"] = 1
        return samples

    def process_batched(self, samples):
        return [stats["good"] for stats in samples[Fields.stats]]


@OPERATORS.register_module("touchy_single_filter")
class TouchySingleFilter(Filter):
    def compute_stats_single(self, sample, context=False):
        sample[Fields.stats]["length"] = 10 // (sample[self.text_key] != "zero division here")
        return sample

    def process_single(self, sample):
        return sample[self.text_key] != "a row to be dropped"
"""


def pair(number: int, text: str) -> DPOPair:
    return plain_pair(
        number,
        label_source="teachers",
        chosen=(Message("assistant", text),),
        rejected=(Message("assistant", "the other side"),),
        rejected_operation="run",
    )
