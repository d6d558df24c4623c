"""The demo's page: who shapes the model, what forgetting cost, and that the bytes are the right ones."""

from functools import partial

import numpy as np

from maxrr.report import pictures
from maxrr.report.charts import bar, fingerprint, shares, unit_histogram
from maxrr.report.markup import Html, tag, together
from maxrr.report.page import KINDS, details, figure, hero, legend, named, page, pairs, paragraphs, section, table
from maxrr.report.receipts import date, in_words
from maxrr.report.story import RequestStory, Story
from maxrr.report.words import count, duration, listed, percent, scientific, spelled
from maxrr.unlearning import Plan, Receipt

COLUMNS = 48  # of the sheets with all images

# The look's colours, which a picture cannot ask for.
INKS: dict[str, pictures.Ink] = {"free": (110, 119, 129), "influential": (209, 98, 27), "core": (31, 111, 235)}

MEANING = {
    "free": "neither core nor influential",
    "influential": "on or inside a margin, not core",
    "core": "the extractor learned from them",
}


def demo_page(story: Story) -> str:
    """One self-contained HTML page that tells the story."""
    return page(
        f"MaxRR on {story.source}: {headline(story)}",
        f"Demo on {story.source}, {date(story.requests[-1].receipt)}",
        opening(story),
        requests(story),
        margins(story),
        who(story),
        costs(story),
        same_bytes(story),
        receipts(story),
        foot=made(story),
    )


def headline(story: Story) -> str:
    """What happened, whether it is what was hoped for or not."""
    gone = count(int(story.forgotten.sum()), "image")
    return f"{gone} forgotten, to the byte." if story.same_bytes else f"{gone} forgotten, but the bytes differ."


def opening(story: Story) -> Html:
    asked = story.requests
    equal = sum(request.same_bytes for request in asked)
    forgetting, again = sum(request.seconds for request in asked), sum(request.retrained_seconds for request in asked)
    cheapest = min(asked, key=lambda request: request.seconds)
    after = "each" if equal == len(asked) else f"{spelled(equal)} of these"
    lead = (
        f"A classifier learned from {len(story.labels):,} images. Then {spelled(len(asked))} requests asked it "
        f"to forget {story.forgotten.sum()} of them. After {after} it was, byte for byte, the classifier that training "
        f"again without them gives. Forgetting took {duration(forgetting)} in all, training again {duration(again)}."
    )
    facts = [
        (
            f"{story.kinds['free'].sum():,} of {len(story.labels):,}",
            "records are free: none of them shapes the model",
        ),
        (
            duration(cheapest.seconds),
            f"to forget {len(cheapest.rows)} {cheapest.kind} ones; training again takes "
            f"{duration(cheapest.retrained_seconds)}",
        ),
        (f"{equal} of {len(asked)}", "requests ended in the very bytes of training again"),
        (
            f"{100 * story.accuracy:.1f} → {percent(asked[-1].accuracy, 1)}",
            f"accuracy on {story.test_records:,} test images, before and after",
        ),
    ]
    return hero(headline(story), lead, facts)


def requests(story: Story) -> Html:
    return section(
        "What was forgotten",
        "Drawn at random from three kinds of records, each image with its label. Each request came on top of the last.",
        tag("div", *(request_card(story, request) for request in story.requests), class_="cards"),
    )


def request_card(story: Story, request: RequestStory) -> Html:
    names = [story.class_names[label] for label in story.labels[request.rows]]
    images = [
        tag("li", tag("img", src=pictures.drawn(story.images[row]), alt=f"image of class {name}"), tag("span", name))
        for row, name in zip(request.rows, names, strict=True)
    ]
    return tag(
        "article",
        tag("h3", named(KINDS[request.kind], f"{len(request.rows)} {request.kind}")),
        tag("p", MEANING[request.kind], class_="quiet"),
        tag("ul", *images, class_="images"),
        pairs(
            ("guarantee", tag("code", request.receipt.guarantee)),
            ("plan", planned(request.plans[0])),
            ("forgotten in", tag("strong", duration(request.seconds))),
            ("training again", duration(request.retrained_seconds)),
            ("bytes", agreement(request.same_bytes)),
            ("accuracy then", percent(request.accuracy, 1)),
        ),
        class_=f"card {KINDS[request.kind].style}-top",
    )


def planned(plan: Plan) -> str:
    """The work that a plan foresaw."""
    if plan.trains:
        return f"train on {plan.trains:,} records again"
    return f"move {count(plan.heads, 'head')}" if plan.heads else "move nothing"


def agreement(same: bool) -> Html:
    """Said with a sign, so that it does not take colours to see it."""
    return tag("span", "✓ identical" if same else "✗ different", class_="good" if same else "bad")


def who(story: Story) -> Html:
    kinds = story.kinds
    parts = [(KINDS[kind], int(members.sum())) for kind, members in kinds.items()]
    total = len(story.labels)
    text = [(group, f"{size:,} {group.name} ({percent(size / total)})") for group, size in parts]
    return section(
        f"{parts[0][1]:,} of {total:,} records shape nothing",
        "Core records train the extractor, the network before the last layer. Influential ones hold the last layer, an "
        "exact SVM, in place. The model would be the same without all the others.",
        figure(
            "Every training image, by kind and then by class. Empty frames: the forgotten.",
            shares(parts),
            legend(text),
            *(contact_sheet(story, kind) for kind in kinds if kinds[kind].any()),
        ),
    )


def contact_sheet(story: Story, kind: str) -> Html:
    """All images of a kind, in the order of their classes."""
    rows = np.flatnonzero(story.kinds[kind])
    rows = rows[np.argsort(story.labels[rows], kind="stable")]
    gone = story.forgotten[rows]
    label = f"{len(rows):,} {kind} images, {gone.sum()} of them forgotten"
    return pictures.contact_sheet(story.images[rows], gone, COLUMNS, INKS[kind], label)


def margins(story: Story) -> Html:
    # A record on the margin has a margin of 1 up to rounding, and the solved problem knows which side it is on.
    above = np.nextafter(1.0, 2.0)
    shown = np.where(story.influential, np.minimum(story.margins, 1.0), np.maximum(story.margins, above))
    inside, outside = int(story.influential.sum()), int((~story.influential).sum())
    groups = [(KINDS[kind], story.kinds[kind]) for kind in ("core", "influential", "free")]
    chart = partial(
        unit_histogram, shown, groups, story.forgotten, lowest=-2, edge=1.0, step=0.25,
        label=f"Histogram of margins: {inside} of {len(shown)} records have a margin of at most 1 in some head.",
    )  # fmt: skip
    wide = (f"{inside:,} at or below 1 hold the heads in place", f"{outside:,} above 1 in every head")
    narrow = (f"{inside:,} up to 1", f"{outside:,} above")
    return section(
        "The margin tells who is influential",
        "Each class has a head that tells it from the rest. A record above 1 in every head moves none when it leaves.",
        figure(
            "One mark for each training record, at its margin in the head where that is smallest, before any request. "
            f"Core records trained the extractor, wherever they lie. Ringed: the {story.forgotten.sum()} forgotten.",
            legend([(group, f"{group.name}: {MEANING[group.name]}") for group, _ in reversed(groups)]),
            chart(width=960.0, notes=wide, style="wide"),
            chart(width=340.0, notes=narrow, style="narrow"),
        ),
    )


def costs(story: Story) -> Html:
    longest = max(max(request.seconds, request.retrained_seconds) for request in story.requests)
    rows = (
        tag(
            "div",
            tag("h3", named(KINDS[request.kind], f"{len(request.rows)} {request.kind}")),
            timing("forgotten", request.seconds, longest, KINDS[request.kind].style),
            timing("trained again", request.retrained_seconds, longest, "again"),
            class_="timings",
        )
        for request in story.requests
    )
    return section(
        "What each request cost",
        f"Beside training again, forgetting was {listed([price(request) for request in story.requests])}.",
        figure("Seconds on this machine, all on one scale.", *rows),
        *(choice(request) for request in story.requests if len(request.plans) > 1),
    )


def price(request: RequestStory) -> str:
    """What forgetting cost, as a part of training again."""
    times = request.retrained_seconds / request.seconds
    compared = f"{times:,.0f} times faster" if times >= 1.5 else "no faster"
    return f"{compared} for the {request.kind} records"


def timing(what: str, seconds: float, longest: float, style: str) -> Html:
    return tag(
        "div",
        tag("span", what), tag("div", bar(seconds / longest, style), tag("span", duration(seconds))),
        class_="timing",
    )  # fmt: skip


def choice(request: RequestStory) -> Html:
    """Why this plan, and which others there were."""
    done, *others = request.plans
    texts = [
        together(
            f"The {request.kind} records could also have been answered with ", tag("code", str(other.guarantee)),
            f": {other.reason}. That moves {count(other.heads, 'head')} and trains nothing. This demo chose ",
            tag("code", str(done.guarantee)), f", which trains on {done.trains:,} core records again, because then "
            "the bytes can be compared.",
        )
        for other in others
    ]  # fmt: skip
    return tag("aside", paragraphs(*texts))


def same_bytes(story: Story) -> Html:
    rows = [
        (
            named(KINDS[request.kind], f"{len(request.rows)} {request.kind}"),
            hashed(request.before, "again"),
            hashed(request.model, KINDS[request.kind].style),
            hashed(request.retrained, KINDS[request.kind].style if request.same_bytes else "bad"),
            agreement(request.same_bytes),
        )
        for request in story.requests
    ]
    replayed, last = story.replay, story.requests[-1].receipt
    said = [
        f"Then a fresh process got the recipe, the names of the core records and the {last.records_after:,} retained "
        f"images, but no weights, and trained once more. What came of comparing "
        f"{replayed.made_again}, after {duration(replayed.seconds)}: ",
        tag("strong", f"{replayed.outcome}."),
    ]
    if replayed.differs_most:
        said.append(
            f" The largest difference is {scientific(replayed.largest_difference)}, in {replayed.differs_most}."
        )
    if replayed.not_covered:
        said.append(f" Not covered: {replayed.not_covered}.")
    headings = ("request", "model before", "model after", "trained again without them", "bytes")
    return section(
        "The bytes, side by side",
        "SHA-256 over every weight of extractor and heads, drawn as one bar for each byte.",
        table(headings, rows, "Hashes of the model before and after each request, and of one trained again"),
        tag("aside", tag("p", *said)),
    )


def hashed(digest: str, style: str) -> Html:
    half = len(digest) // 2
    return tag("div", fingerprint(digest, style), tag("code", digest[:half], tag("wbr"), digest[half:]), class_="hash")


def receipts(story: Story) -> Html:
    return section(
        "The receipts, in words",
        "A receipt says what was done and lets others check it. It names records by keyed hashes only, so it can be "
        "handed out; this page, with the images in it, is for a demo on public data.",
        tag(
            "div",
            *(receipt_card(request.receipt, KINDS[request.kind].style) for request in story.requests),
            class_="cards",
        ),
    )


def made(story: Story) -> Html:
    """How the numbers came about, for whoever wants them again."""
    receipt = story.requests[-1].receipt
    recipe = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in receipt.recipe.items())
    environment = receipt.environment
    return paragraphs(
        f"Fitted in {duration(story.fit_seconds)}. Seed {receipt.seed}; {recipe}; C {receipt.C:g}. "
        f"PyTorch {environment['torch_version']}, NumPy {environment['numpy_version']}, {environment['device']} with "
        f"{count(environment['threads'], 'thread')}, {environment['machine']}.",
        together("Made by ", tag("code", "maxrr demo"), ". Everything on this page was measured in that run."),
    )


def receipt_card(receipt: Receipt, style: str) -> Html:
    """The receipt in sentences, and as it is handed out."""
    return tag(
        "article",
        tag("h3", f"Receipt {receipt.number}"),
        tag("p", tag("code", receipt.guarantee)),
        paragraphs(*in_words(receipt)),
        details("As handed out (JSON)", receipt.to_json()),
        class_=f"card receipt {style}-top",
    )
