"""While the code changes: threads move or are gone, approvals go stale, suggestions fit or are refused."""

from __future__ import annotations

import pytest

from tests.webapp.reviewing import KERNEL, Story, judged
from webapp.reviews.models import Revision, Thread
from webapp.reviews.sources import material_sha256
from webapp.workspaces.models import AuditEntry

pytestmark = pytest.mark.django_db


@pytest.fixture
def story(db: None) -> Story:
    return Story()


def begin(story: Story, it: dict, line: int, status: int = 201, **more: object) -> dict:  # type: ignore[type-arg]
    anchor = {"revision": it["head"]["id"], "line": line, "end_line": line}
    body = {"anchor": anchor, "body": "Look here", **more}
    found: dict = story.rob.post(f"review-requests/{it['id']}/threads", body, status)  # type: ignore[type-arg]
    return found


def test_threads_go_along_with_their_code_or_say_that_it_is_gone(story: Story) -> None:
    it = story.with_kernel()
    guard, store = begin(story, it, 3), begin(story, it, 4)
    moved = "#include <cuda.h>\n\n" + KERNEL.replace("x[i] = x[i] * f;", "x[i] *= f;")
    second = story.push(it["id"], moved, it["head"]["id"])
    now = story.ann.get(f"threads/{guard['id']}")
    assert (now["place"], now["moved"], now["gone"]) == (
        {"side": "new", "line": 5, "end_line": 5},
        True,
        False,
    )
    assert now["anchor"]["line"] == 3
    without = "\n".join(line for line in moved.splitlines() if "if (i" not in line and "*=" not in line)
    third = story.push(it["id"], without, second["id"])
    gone = story.ann.get(f"threads/{guard['id']}")
    assert (gone["place"], gone["gone"], gone["resolved"]) == (None, True, False)
    assert story.ann.get(f"review-requests/{it['id']}")["unresolved"] == 2  # nothing is hidden
    story.push(it["id"], moved, third["id"])
    assert story.ann.get(f"threads/{guard['id']}")["place"]["line"] == 5
    assert story.ann.get(f"threads/{store['id']}")["place"]["line"] == 6


def test_posting_against_a_moved_revision_says_where_the_code_is_now(story: Story) -> None:
    it = story.with_kernel()
    head = story.push(it["id"], "// scaling\n" + KERNEL, it["head"]["id"])["id"]
    problem = begin(story, it, 3, 409)
    assert problem["type"] == "/problems/code-moved"
    assert problem["code_moved"] == {"head": head, "place": {"side": "new", "line": 4, "end_line": 4}}
    assert Thread.objects.count() == 0
    carried = begin(story, it, 3, carry=True)
    assert (carried["place"]["line"], carried["anchor"]["line"], carried["moved"]) == (4, 3, True)
    gone = story.push(it["id"], "int nothing;\n", head)["id"]
    assert begin(story, it, 3, 409)["code_moved"] == {"head": gone, "place": None}
    submission = {"verdict": "comment", "body": "x", "revision": head}
    story.rob.post(f"review-requests/{it['id']}/submissions", submission, 409)
    assert story.push(it["id"], "int other;\n", head, 409)["type"] == "/problems/code-moved"
    # Where nothing moved, an earlier revision is as good as the head.
    same = story.push(it["id"], KERNEL + "// the end\n", gone)
    assert begin(story, it, 3)["place"] == {"side": "new", "line": 3, "end_line": 3}
    wrong = {"anchor": {"revision": same["id"], "line": 1, "end_line": 1, "quoted": "other"}, "body": "x"}
    story.rob.post(f"review-requests/{it['id']}/threads", wrong, 400)
    begin(story, {"id": it["id"], "head": same}, 99, 400)


@pytest.mark.parametrize(
    ("change", "stale"),
    [
        (lambda s: s.replace("    ", "\t").replace("\n", "\r\n"), False),
        (lambda s: "// Scales.\n" + s.replace("if (i < n)", "if (i < n)  /* guard */"), False),
        (lambda s: s.replace("i < n", "i <= n"), True),
        (lambda s: s.replace("256", "128"), True),
    ],
    ids=["white_space", "comments", "one_character", "launch"],
)
def test_an_approval_goes_stale_by_a_material_change(story: Story, change, stale: bool) -> None:  # type: ignore[no-untyped-def]
    it = story.with_kernel(reviewers=["team-rob"])
    here = f"review-requests/{it['id']}"
    story.rob.post(f"{here}/submissions", {"verdict": "approve", "revision": it["head"]["id"]}, 201)
    assert story.rob.get(here)["state"] == "approved"
    pushed = story.push(it["id"], change(KERNEL), it["head"]["id"])
    judged(pushed["id"])
    now = story.rob.get(here)
    assert now["state"] == ("open" if stale else "approved")
    assert now["reviewers"][0]["state"] == ("stale" if stale else "approved")
    assert story.ann.get(f"{here}/submissions")["results"][0]["stale"] is stale
    assert bool(story.rob.get("inbox")["results"]) is stale
    story.mia.post(f"{here}/merge", {}, 409 if stale else 200)


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("a + +b;", "a ++b;", False),
        ("int ab;", "int a b;", False),
        ('s = "a b";', 's = "ab";', False),
        ("#define A 1\nB", "#define A 1 B", False),
        ("#define A \\\n 1\nB", "#define A 1\nB", True),
        ("#include <a//b.h>\nx", "#include <a//c.h>\nx", False),
        ("x; // a\ny;", "x;\ny;", True),
        ("x = '\"'; // a", "x = '\"';", True),
        ('R"(a // b)" c', 'R"(a // c)" c', False),
        ("int l = __LINE__;", "\nint l = __LINE__;", False),
        ("#define S(x) #x\nS(a+b)", "#define S(x) #x\nS(a + b)", False),
        ("", "// nothing", True),
    ],
)
def test_what_is_material(old: str, new: str, same: bool) -> None:
    assert (material_sha256(old) == material_sha256(new)) is same


def test_suggestions_are_applied_together_or_refused_with_which(story: Story) -> None:
    it = story.with_kernel()

    def suggest(first: int, last: int, text: str) -> str:
        made = begin(story, it, first, suggestion={"line": first, "end_line": last, "text": text})
        return str(made["comments"][0]["id"])

    guard = suggest(3, 3, "    if (i >= n) return;")
    store = suggest(4, 4, "    x[i] *= f;\n")
    both = suggest(3, 4, "    if (i < n) x[i] *= f;")
    apply = f"review-requests/{it['id']}/suggestions/apply"
    problem = story.ann.post(apply, {"comments": [guard, both]}, 409)
    assert problem["type"] == "/problems/suggestions-conflict"
    assert [error["field"] for error in problem["errors"]] == [both]
    assert guard in problem["errors"][0]["message"]
    made = story.ann.post(apply, {"comments": [store, guard]}, 201)
    assert made["source"] == KERNEL.replace(
        "    if (i < n)\n        x[i] = x[i] * f;\n", "    if (i >= n) return;\n    x[i] *= f;\n"
    )
    assert (made["state"], made["credited"]) == ("pending", ["team-rob"])
    assert Revision.objects.get(pk=made["id"]).judgement is not None
    again = story.ann.post(apply, {"comments": [guard, both]}, 409)
    assert {error["field"] for error in again["errors"]} == {guard, both}
    assert AuditEntry.objects.filter(action="review.push", actor=story.ann.user.pk).count() == 2


def test_a_suggestion_finds_its_lines_after_others_came_above(story: Story) -> None:
    it = story.with_kernel()
    made = begin(story, it, 4, suggestion={"line": 4, "end_line": 4, "text": "        x[i] *= f;"})
    crlf = ("// new\n" + KERNEL).replace("\n", "\r\n")
    story.push(it["id"], crlf, it["head"]["id"])
    apply = {"comments": [made["comments"][0]["id"]]}
    after = story.ann.post(f"review-requests/{it['id']}/suggestions/apply", apply, 201)
    assert after["source"] == crlf.replace("x[i] = x[i] * f;", "x[i] *= f;")


def test_the_difference_of_any_two_revisions_with_its_numbers(story: Story) -> None:
    it = story.with_kernel()
    changed = KERNEL.replace("        x[i]", "      x[i]").replace("256", "128")
    pushed = story.push(it["id"], changed, it["head"]["id"])
    judged(pushed["id"], "passed", 90.0)
    here = f"review-requests/{it['id']}/diff"
    both = f"{here}?from={it['head']['id']}&to={pushed['id']}"
    shown = story.rob.get(both)
    assert (shown["added"], shown["removed"], shown["material"]) == (2, 2, True)
    assert [line["kind"] for line in shown["hunks"][0]["lines"]].count("removed") == 2
    score = next(metric for metric in shown["metrics"] if metric["name"] == "structural score")
    assert (score["old"], score["new"], score["better"]) == (80.0, 90.0, True)
    ignoring = story.rob.get(f"{both}&whitespace=ignore&context=0")
    assert (ignoring["added"], ignoring["removed"], len(ignoring["hunks"])) == (1, 1, 1)
    assert ignoring["hunks"][0]["old_start"] == 8
    everything = story.rob.get(f"{both}&context=all")
    assert len(everything["hunks"][0]["lines"]) == 11
    assert story.rob.get(here)["old"] is None
    first = it["turns"][0]["id"]
    assert story.rob.get(f"{here}?from={first}")["old"] == first
    other = Story("other").with_kernel()
    story.rob.get(f"{here}?from={other['head']['id']}", 404)
    story.rob.get(f"{here}?context=many", 400)
