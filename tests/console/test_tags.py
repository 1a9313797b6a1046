"""What the template tags write."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.template import Context, Template
from django.test import RequestFactory
from django.utils import timezone

from gpucloud import durations
from gpucloud.icons import ICONS
from tests import make


def written(source: str, path: str = "/", **context: object) -> str:
    request = RequestFactory().get(path)
    return Template(source).render(Context({"request": request, **context}))


def test_a_badge_says_word_and_tone() -> None:
    assert (
        written('{% badge "Ready" "good" %}') == '<span class="badge" data-tone="good">Ready</span>'
    )
    assert "Planned" in written("{% badge state %}", state=("Planned", "neutral"))


def test_a_badge_of_a_row_takes_the_label_of_the_model_and_the_tone_of_its_lifecycle(
    db: None,
) -> None:
    server = make.server(state="failed")
    got = written("{% badge server %}", server=server)
    assert "Failed" in got
    assert 'data-tone="bad"' in got


def test_a_badge_escapes_its_words() -> None:
    assert "<b>" not in written("{% badge state %}", state=("<b>x</b>", "bad"))


def test_an_unknown_tone_is_a_bug_and_says_so() -> None:
    with pytest.raises(ValueError, match="purple"):
        written('{% badge "Ready" "purple" %}')


def test_icons_are_a_closed_list() -> None:
    assert 'aria-hidden="true"' in written('{% icon "server" %}')
    assert 'aria-label="Server"' in written('{% icon "server" "Server" %}')
    with pytest.raises(KeyError):
        written('{% icon "unicorn" %}')


def test_every_icon_is_drawn() -> None:
    for name in ICONS:
        assert "<svg" in written(f'{{% icon "{name}" %}}')


def test_an_age_has_the_absolute_time_with_zone_in_its_title() -> None:
    moment = timezone.now() - timedelta(minutes=3, seconds=5)
    got = written("{% ago moment %}", moment=moment)
    assert ">3 min ago</time>" in got
    assert f"{moment:%H:%M:%S} UTC" in got
    assert f'datetime="{moment.isoformat()}"' in got


def test_an_age_of_nothing_is_a_word() -> None:
    assert "never" in written("{% ago moment %}", moment=None)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"), (1.25, "1.2 s"), (5, "5 s"), (59.7, "1 min"), (326, "5 min 26 s"),
        (3600, "1 h"), (7560, "2 h 6 min"), (187200, "2 d 4 h"), (-5, "-5 s"),
    ],
)  # fmt: skip
def test_durations_have_two_units(seconds: float, words: str) -> None:
    assert durations.words(timedelta(seconds=seconds)) == words
    assert durations.words(seconds) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "just now"), (4, "4 s ago"), (125, "2 min ago"), (90000, "1 d ago"), (-61, "in 1 min")],
)
def test_ages_have_one_unit(seconds: float, words: str) -> None:
    assert durations.ago(seconds) == words


def test_a_duration_can_be_the_time_since_a_moment() -> None:
    start = datetime(2026, 11, 1, 6, 0, 0, tzinfo=UTC)
    got = written("{% duration start until %}", start=start, until=start + timedelta(seconds=172))
    assert got == "2 min 52 s"


def test_query_edits_the_query_string_and_keeps_the_rest() -> None:
    path = "/servers/?q=a&state=ready&state=failed&page=2"
    assert written('{% query sort="-name" page=None %}', path).replace("&amp;", "&") == (
        "?q=a&state=ready&state=failed&sort=-name"
    )
    assert written("{% query q=None state=None page=None %}", path) == "?"


def test_copyable_shortens_in_the_middle_and_copies_the_whole() -> None:
    uid = "5f1c7e0a-41d2-4c6b-9a53-7d20e8b6cf45"
    got = written("{% copyable uid 16 %}", uid=uid)
    assert "5f1c7e0a…8b6cf45" in got
    assert f'data-copy="{uid}"' in got
    assert f'title="{uid}"' in got


def test_mono_of_nothing_is_a_dash() -> None:
    assert "–" in written("{% mono value %}", value="")


def test_a_verdict_says_yes_no_or_not_checked() -> None:
    assert "Match" in written('{% verdict True "Match" %}')
    assert 'data-tone="bad"' in written('{% verdict False "" "Cleaning" %}')
    assert "Not checked" in written("{% verdict None %}")


def test_a_panel_has_a_head_and_carries_its_revision() -> None:
    got = written(
        '{% panel title id="claim-1-facts" rev=7 note=note %}in{% endpanel %}',
        title="A & B",
        note="x < y",
    )
    assert 'id="claim-1-facts" data-rev="7"' in got
    assert "A &amp; B" in got
    assert "x &lt; y" in got
    assert ">in</section>" in got


def test_live_topics_become_one_socket() -> None:
    got = written("{% live_socket topics %}", topics=["claim:1", "list:claim"])
    assert 'ws-connect="/live/?t=claim%3A1&amp;t=list%3Aclaim"' in got
    assert written("{% live_socket topics %}", topics=[]) == ""


def test_pips_say_where_the_steps_stand() -> None:
    steps = [{"name": "Select", "state": "done"}, {"name": "Install", "state": "running"}]

    class Step:
        def __init__(self, name: str, state: str) -> None:
            self.name, self.state = name, state

    rows = [Step(**step) for step in steps]
    assert "Step 2 of 2, Install" in written('{% include "ui/pips.html" %}', steps=rows)
