"""The bar strip's arithmetic."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from gpucloud.gantt import Gantt, Span

START = datetime(2026, 11, 1, 6, 6, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def s(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


def test_nothing_is_drawn_before_anything_ran() -> None:
    assert Gantt.of([Span("Select")], START) is None


def test_measured_bars_lie_where_they_were() -> None:
    strip = Gantt.of([Span("Select", [(at(0), at(30), "done")])], at(60), ended=at(60))
    assert strip is not None
    bar = strip.rows[0].bars[0]
    assert bar.kind == "ran"
    assert 0 <= bar.at < bar.at + bar.length <= 100


def test_the_rest_is_planned_one_after_the_other() -> None:
    spans = [
        Span("Install", [(at(0), None, "running")], s(100), s(150)),
        Span("Stop", [], s(10), s(20)),
        Span("Move", [], s(30), s(40)),
    ]
    strip = Gantt.of(spans, at(40))
    assert strip is not None
    assert strip.expected == at(140)
    stop, move = (row.bars[-1] for row in strip.rows[1:])
    assert abs(stop.at + stop.length - move.at) < 0.1


def test_a_late_step_pushes_the_rest() -> None:
    spans = [Span("Install", [(at(0), None, "running")], s(100)), Span("Stop", [], s(10))]
    strip = Gantt.of(spans, at(300))
    assert strip is not None
    assert strip.expected == at(310)


def test_without_a_usual_time_nothing_is_promised() -> None:
    strip = Gantt.of([Span("Install", [(at(0), None, "running")]), Span("Stop", [], s(10))], at(5))
    assert strip is not None
    assert strip.expected is None


def test_labels_do_not_lie_under_now() -> None:
    strip = Gantt.of([Span("Install", [(at(0), None, "running")], s(300))], at(60))
    assert strip is not None
    now = strip.moments[0]
    assert all(abs(hour.at - now.at) >= 4 for hour in strip.hours)
    assert strip.ticks < 10


def test_an_hour_at_the_axis_end_makes_room_for_the_expected_moment() -> None:
    # Axis 06:06:00 to 06:06:40; expected at 06:06:38, beside the last hour, which stands inside.
    strip = Gantt.of([Span("Install", [(at(0), None, "running")], s(37))], at(20))
    assert strip is not None
    assert [moment.words for moment in strip.moments] == ["now 06:06:21", "ready 06:06:38"]
    assert strip.hours[-1].at < 90
    assert [hour.side for hour in strip.hours] == ["start"] + [""] * (len(strip.hours) - 1)


def test_the_strip_has_a_sentence() -> None:
    spans = [Span("Select", [(at(0), at(1), "done")]), Span("Install", [(at(1), None, "running")])]
    strip = Gantt.of([*spans, Span("Stop")], at(9))
    assert strip is not None
    assert "Install is running" in strip.sentence
    assert "1 are done, 1 follow" in strip.sentence
