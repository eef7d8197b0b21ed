"""Metrics of one process: each has its own, what is read is read once, and what cannot be read is left out."""

import asyncio

import pytest

from paceline.kits import metrics as kit
from paceline.kits.metrics import Metric, Metrics, Reading

DONE = Metric("paceline_done_total", "counter", "What was done.", ("how",))
DEEP = Metric("paceline_deep_messages", "gauge", "How deep it is.", ("queue",))
TOOK = Metric("paceline_took_seconds", "histogram", "How long it took.", buckets=(1.0, 5.0))


async def told(metrics: Metrics) -> list[str]:
    return [line for line in (await metrics.render()).decode().splitlines() if not line.startswith("#")]


async def test_two_in_one_process_know_nothing_of_each_other() -> None:
    one, other = Metrics(), Metrics()
    one.counter(DONE).labels("well").inc()
    other.counter(DONE)
    assert await told(one) == ['paceline_done_total{how="well"} 1.0']
    assert await told(other) == []


async def test_a_histogram_has_its_buckets_and_no_second_series_about_its_birth() -> None:
    metrics = Metrics()
    metrics.histogram(TOOK).observe(2)
    assert await told(metrics) == [
        'paceline_took_seconds_bucket{le="1.0"} 0.0',
        'paceline_took_seconds_bucket{le="5.0"} 1.0',
        'paceline_took_seconds_bucket{le="+Inf"} 1.0',
        "paceline_took_seconds_count 1.0",
        "paceline_took_seconds_sum 2.0",
    ]


async def test_what_is_at_a_bound_is_within_it_and_what_was_never_counted_is_told_as_none() -> None:
    metrics = Metrics()
    histogram, counter = metrics.histogram(TOOK), metrics.counter(Metric("paceline_all_total", "counter", "All."))
    assert "paceline_took_seconds_count 0.0" in await told(metrics)
    histogram.observe(1)
    histogram.observe(9)
    counter.inc(2)
    assert await told(metrics) == [
        'paceline_took_seconds_bucket{le="1.0"} 1.0',
        'paceline_took_seconds_bucket{le="5.0"} 1.0',
        'paceline_took_seconds_bucket{le="+Inf"} 2.0',
        "paceline_took_seconds_count 2.0",
        "paceline_took_seconds_sum 10.0",
        "paceline_all_total 2.0",
    ]


def test_a_label_too_few_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="how"):
        Metrics().counter(DONE).labels()


async def test_what_somebody_else_counts_is_a_counter_too() -> None:
    metrics = Metrics()

    async def source() -> list[Reading]:
        return [Reading(DONE, 7, ("well",)), Reading(DEEP, 3, ("q",))]

    metrics.read(source)
    text = (await metrics.render()).decode()
    assert "# TYPE paceline_done_total counter\n" in text
    assert 'paceline_done_total{how="well"} 7.0' in text
    assert "# HELP paceline_deep_messages How deep it is.\n" in text


async def test_many_who_ask_at_once_cost_one_reading() -> None:
    metrics, asked = Metrics(), 0

    async def source() -> list[Reading]:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0)
        return [Reading(DEEP, asked, ("q",))]

    metrics.read(source)
    answers = await asyncio.gather(*(metrics.render() for _ in range(10)))
    assert asked == 1
    assert len(set(answers)) == 1


async def test_a_source_whose_store_is_away_is_left_out_and_the_rest_is_told() -> None:
    class Away(Exception):
        pass

    metrics = Metrics(expected=Away)

    async def away() -> list[Reading]:
        raise Away

    async def here() -> list[Reading]:
        return [Reading(DEEP, 1, ("q",))]

    metrics.read(away)
    metrics.read(here)
    assert await told(metrics) == ['paceline_deep_messages{queue="q"} 1.0']


async def test_a_source_that_stands_still_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kit, "READING_SECONDS", 0.0)
    metrics = Metrics()
    metrics.counter(DONE).labels("well").inc()

    async def stuck() -> list[Reading]:
        await asyncio.Event().wait()
        return []

    metrics.read(stuck)
    assert await told(metrics) == ['paceline_done_total{how="well"} 1.0']


async def test_a_bug_in_a_source_is_no_reason_to_tell_less_without_a_word() -> None:
    metrics = Metrics()

    async def broken() -> list[Reading]:
        raise ValueError

    metrics.read(broken)
    with pytest.raises(ValueError):
        await metrics.render()


async def test_the_process_tells_what_it_takes() -> None:
    names = {line.partition(" ")[0] for line in await told(Metrics().with_process())}
    assert {"process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds"} <= names
