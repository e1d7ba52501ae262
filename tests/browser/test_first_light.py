"""What a new user does, in a real browser: open, translate, watch, believe, take away."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.conftest import missing

ROOT = Path(__file__).resolve().parents[2]
RUN_SECONDS = 120

ENDLESS = """void spin(int n, float *x)
{
    for (;;)
        for (int i = 0; i < n; i++)
            x[i] += 1.0f;
}
"""
BROKEN = """void scale(int n, float *x)
{
    for (int i = 0; i < n; i++)
        x[i] = 2.0f * ;
}
"""
TWO = """void one(int n, float *x)
{
    for (int i = 0; i < n; i++)
        x[i] = 1.0f;
}

void two(int n, float *x)
{
    for (int i = 0; i < n; i++)
        x[i] = 2.0f;
}
"""


def open_example(page: Page, title: str) -> None:
    page.locator(".side-pane").get_by_role("button", name=title, exact=True).click()


def paste(page: Page, source: str) -> None:
    """Into an empty source, all at once as a clipboard would."""
    page.keyboard.press("Alt+n")
    expect(page.locator(".source-pane .tab.active")).to_contain_text("untitled")
    editor = page.locator(".source-pane .monaco-editor[role='code']")
    editor.click()
    page.evaluate(
        """text => {
            const data = new DataTransfer();
            data.setData('text/plain', text);
            document.activeElement.dispatchEvent(
                new ClipboardEvent('paste', {clipboardData: data, bubbles: true, cancelable: true}));
        }""",
        source,
    )
    expect(page.locator(".source-pane .view-lines")).to_contain_text(source.split("(")[0].split()[-1])


def translate(page: Page) -> None:
    page.keyboard.press("Control+Enter")
    expect(page).to_have_url(re.compile(r"/runs/[0-9a-f-]{36}$"))


def wait_for_end(page: Page) -> None:
    expect(page.locator(".timeline .ended")).to_be_visible(timeout=RUN_SECONDS * 1000)


@pytest.fixture
def softmax(page: Page) -> Page:
    """A finished run of the row softmax."""
    open_example(page, "Row softmax")
    translate(page)
    wait_for_end(page)
    return page


def test_translates_before_your_eyes(page: Page) -> None:
    # Several turns of a second each, so that what is seen in mid-run can be looked at in mid-run.
    open_example(page, "Matrix product")
    expect(page.locator(".source-pane .view-lines")).to_contain_text("matmul")
    translate(page)
    expect(page.locator("[data-connection='live']")).to_contain_text("live")
    expect(page.get_by_role("button", name="Stop")).to_be_enabled()
    expect(page.locator(".elapsed").first).to_be_visible()
    # The editor renders the lines in sight, which follow what is being written.
    expect(page.locator(".candidate-pane .view-lines")).to_contain_text("const int")
    wait_for_end(page)
    evidence = page.get_by_role("region", name="Evidence")
    expect(evidence.locator(".verdict")).to_contain_text("verified")
    expect(evidence).to_contain_text("draws")
    expect(evidence.locator(".families")).to_contain_text("Coalescing")
    expect(page.locator(".gutter-cell").first).to_be_visible()
    expect(page.locator(".side-pane .section", has_text="My runs").locator(".row").first).to_contain_text(
        "matmul"
    )
    page.keyboard.press("Alt+2")
    expect(page.get_by_role("tabpanel")).to_contain_text("ptxas")
    page.keyboard.press("Alt+3")
    expect(page.get_by_role("tabpanel").locator("tbody tr").first).to_contain_text("passed")
    page.keyboard.press("Alt+5")
    expect(page.get_by_role("tabpanel")).to_contain_text("run_started")


def test_a_reload_in_mid_run_goes_on_from_the_last_event(page: Page) -> None:
    open_example(page, "Matrix product")
    translate(page)
    expect(page.locator(".turn-chip").first).to_be_visible()
    page.reload()
    expect(page.locator(".turn-chip").first).to_be_visible()
    expect(page.locator(".source-pane .tab.active")).to_contain_text(".c")
    wait_for_end(page)
    page.keyboard.press("Alt+5")
    expect(page.locator(".event-row").first.locator(".seq")).to_have_text("1")
    numbers = [int(text) for text in page.locator(".event-row .seq").all_inner_texts()]
    assert numbers == list(range(1, len(numbers) + 1))


def test_turns_are_compared(softmax: Page) -> None:
    turns = softmax.locator(".turn-chip")
    assert turns.count() >= 2
    softmax.keyboard.press("Alt+ArrowLeft")
    expect(turns.nth(turns.count() - 2)).to_have_attribute("aria-current", "true")
    softmax.keyboard.press("Alt+ArrowRight")
    softmax.keyboard.press("Alt+d")
    expect(softmax.locator(".diff-host .monaco-diff-editor")).to_be_visible()
    expect(softmax.locator(".diff-host .line-insert").first).to_be_visible()
    expect(softmax.locator(".candidate-pane .pane-footer")).to_contain_text("→")


def test_the_candidate_can_be_taken_away(softmax: Page, tmp_path: Path) -> None:
    with softmax.expect_download() as download:
        softmax.get_by_role("button", name="Download the shown .cu").click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    assert path.suffix == ".cu"
    assert 'extern "C" void launch(' in path.read_text()


def test_improve_this_starts_from_the_candidate(softmax: Page) -> None:
    before = softmax.url
    softmax.get_by_role("button", name="Improve this candidate").click()
    expect(softmax).not_to_have_url(before)
    expect(softmax.locator(".turn-chip").first).to_be_visible()
    wait_for_end(softmax)
    with softmax.expect_response(re.compile(r"/api/v1/runs/[0-9a-f-]{36}$")) as answer:
        softmax.reload()
    assert "launch(" in answer.value.json()["start_from"]


def test_a_run_can_be_stopped(page: Page) -> None:
    paste(page, ENDLESS)
    translate(page)
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".outcome")).to_contain_text("Stopped")
    expect(page.get_by_role("button", name="Run again")).to_be_visible()
    expect(page.get_by_role("button", name="Stop")).to_be_disabled()


def test_a_source_that_does_not_parse_shows_its_place(page: Page) -> None:
    paste(page, BROKEN)
    translate(page)
    expect(page.locator(".outcome")).to_contain_text("needs a change")
    expect(page.locator(".outcome .link")).to_contain_text(re.compile(r":4:\d+"))
    expect(page.locator(".source-pane .squiggly-error").first).to_be_visible()
    expect(page.locator(".problem").first).to_contain_text("Ln 4")


def test_several_functions_are_asked_about(page: Page) -> None:
    paste(page, TWO)
    translate(page)
    page.locator(".outcome").get_by_role("button", name="Translate two").click()
    expect(page.locator(".candidate-pane .view-lines")).to_contain_text("__global__")
    expect(page.locator(".source-pane .strip")).to_contain_text("two")


def test_files_are_opened_or_refused_with_a_reason(page: Page, tmp_path: Path) -> None:
    good, binary, large = tmp_path / "mine.c", tmp_path / "latin.c", tmp_path / "large.c"
    good.write_text("void mine(int n, float *x) { for (int i = 0; i < n; i++) x[i] = 0; }\n")
    binary.write_bytes("/* \xe9 */\n".encode("latin-1"))
    large.write_text("/* */\n" * 200_000)
    chooser = page.locator("input[type=file]")
    chooser.set_input_files(good)
    expect(page.locator(".source-pane .tab.active")).to_contain_text("mine.c")
    chooser.set_input_files([binary, large])
    expect(page.locator(".notice.error").first).to_contain_text("not UTF-8")
    expect(page.locator(".notice.error").last).to_contain_text("1 MB")
    expect(page.locator(".source-pane .tab")).to_have_count(1)
    expect(page.locator(".source-pane .view-lines")).to_contain_text("mine")


def test_ones_own_cuda_is_a_starting_point(page: Page, tmp_path: Path) -> None:
    open_example(page, "SAXPY")
    mine = tmp_path / "mine.cu"
    mine.write_text('extern "C" void launch(int n, float a, const float *x, float *y) {}\n')
    page.locator("input[type=file]").set_input_files(mine)
    expect(page.locator(".source-pane .strip")).to_contain_text("mine.cu")
    with page.expect_request(re.compile("/api/v1/runs$")) as request:
        page.keyboard.press("Control+Enter")
    assert request.value.post_data_json["start_from"] == mine.read_text()
    expect(page.locator(".candidate-pane .view-lines")).to_contain_text("launch")
    page.get_by_role("button", name="Stop").click()
    wait_for_end(page)


def test_a_closed_source_comes_back(page: Page) -> None:
    paste(page, BROKEN)
    page.get_by_role("button", name="Close untitled.c").click()
    expect(page.locator(".source-pane .empty-state")).to_be_visible()
    page.locator(".notice").get_by_role("button", name="Undo").click()
    expect(page.locator(".source-pane .view-lines")).to_contain_text("scale")


def test_drafts_survive_a_reload(page: Page) -> None:
    paste(page, BROKEN)
    page.reload()
    expect(page.locator(".source-pane .view-lines")).to_contain_text("scale")


def test_the_recorded_run_plays(page: Page) -> None:
    page.locator(".side-pane .row.two-line").first.click()
    expect(page.locator(".playback")).to_contain_text("recorded")
    expect(page.locator(".turn-chip").first).to_be_visible()
    page.keyboard.press("Alt+p")
    page.get_by_role("button", name="Skip to the end").click()
    expect(page.locator(".timeline .ended")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^Translate"))).to_be_disabled()


@pytest.mark.parametrize("theme", ["dark", "light", "high contrast"])
def test_themes_and_accessibility(softmax: Page, theme: str) -> None:
    # A colour on its way from one theme to the next is neither.
    softmax.emulate_media(reduced_motion="reduce")
    softmax.keyboard.press("Control+k")
    softmax.keyboard.type(f"theme {theme}")
    softmax.keyboard.press("Enter")
    expect(softmax.locator("html")).to_have_attribute("data-theme", theme.replace(" ", "-"))
    axe = ROOT / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
    if not axe.is_file():
        missing("chromium", "axe-core is not installed: cd frontend && npm ci")
    softmax.evaluate(axe.read_text())
    # Monaco's own insides are Monaco's; everything around them is ours.
    found = softmax.evaluate(
        """async () => (await axe.run({exclude: [['.monaco-editor']]}, {
            runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'],
        })).violations.map(v => ({
            id: v.id, nodes: v.nodes.map(n => n.html.slice(0, 200) + ' ' + n.failureSummary),
        }))"""
    )
    assert not found, json.dumps(found, indent=1)


def test_everything_has_a_key(page: Page) -> None:
    page.locator(".breadcrumb").click()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Ctrl+Enter")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    splitter = page.get_by_role("separator", name="Width of the side pane")
    before = int(splitter.get_attribute("aria-valuenow") or 0)
    splitter.focus()
    page.keyboard.press("ArrowRight")
    expect(splitter).to_have_attribute("aria-valuenow", str(before + 16))
    page.keyboard.press("Enter")
    expect(page.locator(".side-pane")).to_have_count(0)
    page.keyboard.press("Control+b")
    expect(page.locator(".side-pane")).to_be_visible()


def test_signing_out_is_at_hand(page: Page) -> None:
    page.get_by_label(re.compile("Account of")).click()
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    token = page.locator("form[action='/sign-out'] input[name='csrfmiddlewaretoken']")
    expect(token).to_have_value(re.compile(r"\w{32,}"))
