"""An estimate as the rows of a table, with what each figure rests on."""

from tracemill.flows.estimate.estimate_cost import CostFigures, Estimate
from tracemill.teachers.planning.measured_usage import BYTES_A_TOKEN


def estimate_rows(found: Estimate) -> list[tuple[str, str]]:
    """Return the total, the figures by teacher, cheapest first, and the assumptions, as (name, figures)."""
    rows = [("expected cost", _total(found)), ("cap", _cap(found))]
    rows += [(figures.teacher, _lines(figures)) for figures in found.teachers]
    if found.decided_later:
        rows.append(("decided later", estimate_later_text(found.decided_later)))
    if found.no_room:
        steps = f"about {found.no_room:,} steps whose pairs the caps of [pairs] would drop"
        rows.append(("skipped", steps))
    if found.judge:
        rows.append(("judge", found.judge))
    if found.hints:
        rows.append(("hints", found.hints))
    rows.append(("prices", _by_teacher({f.teacher: f.price_from for f in found.teachers})))
    rows.append(("tokens and time", _by_teacher({f.teacher: _measured(f) for f in found.teachers})))
    rows.append(("prompt caching", _CACHING))
    if any(share < 1 for share in found.shares):
        rows.append(("early stopping", _early(found)))
    if found.by_share:
        rows.append(("gate share", _by_share(found)))
    return rows


def estimate_later_text(steps: int) -> str:
    """Return the line on steps whose selection depends on later answers."""
    return f"{steps:,} steps: a replay selects them by earlier answers, this estimate by what is known now"


_CACHING = "assumed: a step finds in the prompt cache what the step before it sent"


def _total(found: Estimate) -> str:
    """Return the expected cost of a run, and its upper bound without assumptions."""
    total = found.total
    lines = [
        f"${total.usd_early:.4f} for {_calls(total)} at {total.states:,} steps, about {_time(total.wall_s)}",
        f"${total.usd_uncached:.4f} if nothing is cached and every teacher is asked at every step",
    ]
    return "\n".join(lines if total.usd_uncached > total.usd_early else lines[:1])


def _calls(f: CostFigures) -> str:
    done = f" and {f.bought:,} cached answers" if f.bought else ""
    return f"{f.calls_early:,} calls{done}"


def _lines(f: CostFigures) -> str:
    lines = [f"${f.usd_early:.4f} for {_calls(f)} at {f.states:,} steps"]
    if f.usd_uncached > f.usd_early:
        lines[0] += f", ${f.usd_uncached:.4f} at most"
    if f.calls:
        tokens_in, out = (round(n / f.calls) for n in (f.prompt_tokens, f.answer_tokens))
        lines.append(f"{tokens_in:,} tokens in and {out:,} out a call on average")
    if f.too_long:
        some = f"{f.too_long:,} more prompts are" if f.calls else f"all {f.too_long:,} prompts are"
        lines.append(f"{some} longer than the model's context and not sent")
    return "\n".join(lines)


def _by_teacher(texts: dict[str, str]) -> str:
    """Return the texts with their teachers' names; one text if all are equal."""
    if len({*texts.values()}) == 1:
        return next(iter(texts.values()))
    return "\n".join(f"{name}: {text}" for name, text in texts.items())


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _cap(found: Estimate) -> str:
    worst = f"the most expensive call reserves ${found.total.usd_worst:.4f}"
    cap, total = found.cap_usd, found.total
    if cap is None:
        return f"none set: give --max-usd\n{worst}"
    if total.usd_early <= cap:
        return f"${cap:.2f} covers {'every call' if total.usd_uncached <= cap else 'it'}\n{worst}"
    stops = "does not cover it: a run stops there and keeps what it bought"
    return f"${cap:.2f} {stops}{_within(found, cap)}\n{worst}"


def _within(found: Estimate, cap_usd: float) -> str:
    """Return a line on the largest share of the steps whose cost the cap covers, "" if there is none."""
    within = [each for each in found.by_share if each.usd <= cap_usd]
    if not within:
        return ""
    most = max(within, key=lambda each: each.usd)
    pairs = f"about {most.pairs:,.0f} steps with a pair"
    return f"\n--gate-share {most.share:g} costs ${most.usd:.4f} and goes where a pair is likeliest: {pairs}"


def _measured(f: CostFigures) -> str:
    m = f.measured
    ratio = "assumed" if m.bytes_a_token == BYTES_A_TOKEN else "measured"
    source = f"measured on {m.replies:,} replies in this workspace" if m.replies else "assumed"
    return (
        f"{m.bytes_a_token:.2f} bytes/token ({ratio}), {m.answer_tokens:.0f} tokens/answer,"
        f" {m.latency_s:.1f} s/call ({source})"
    )


def _by_share(found: Estimate) -> str:
    lines = [
        f"{each.share:>7.0%}  ${each.usd:.4f}  about {each.pairs:,.0f} steps with a pair ({each.of_all:.0%})"
        for each in found.by_share
    ]
    learned = f" and {found.learned_steps:,} votes of this workspace" if found.learned_steps else ""
    return "\n".join(
        [
            "expected pairs where `--gate-share` limits the cost to a share:",
            *lines,
            f"estimated by the gate, whose weights rest on public tables{learned}",
            *([] if learned else ["before the first votes the shares say more than the counts"]),
        ]
    )


def _early(found: Estimate) -> str:
    """Return the share of steps for each teacher that is not asked at all of them."""
    lines = [
        f"{share:>7.0%}  of the steps ask {figures.teacher}: the others decide the rest"
        for figures, share in zip(found.teachers, found.shares, strict=True)
        if share < 1
    ]
    return "\n".join([*lines, "assumed: teachers agree as five recorded agents did at the same steps"])
