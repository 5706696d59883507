"""HTML in, HTML out: tags unchanged, balanced, and around the words that they were around."""

import numpy as np
import pytest

from service.kept.restoration import Restored
from service.markup.html import parse
from service.schemas.requests import TagRules
from service.text.aligned_words import AlignedWords
from service.text.spans import Edits, Span
from tests.service.markup.documents import rendered, unchanged, words
from tests.service.stand_ins import protect, restore


def translated(html: str, *translations: tuple[str, str | None]) -> str:
    return rendered(parse(html), *translations)


@pytest.mark.parametrize(
    ("html", "text", "links", "expected"),
    [
        ("<b>Stop!</b> Go.", "止まれ！行け。", "0-0 1-1 2-2", "<b>止まれ！</b>行け。"),
        ("<b>Stop</b>! Go.", "止まれ！行け。", "0-0 1-1 2-2", "<b>止まれ</b>！行け。"),
        ('Go. <b>"Stop."</b>', "行け。「止まれ。」", "0-0 3-2", "行け。<b>「止まれ。」</b>"),
        ("Go, <b>(big)</b>", "行け、大きい", "0-0 3-2", "行け、<b>大きい</b>"),
        ("the <img src=x> dog", "その、犬", "0-0 1-2", "その、<img src=x>犬"),
        ("the <img src=x> dog", "犬", "1-0", "<img src=x>犬"),
        ("<label>Age <input></label>", "年齢", "0-0", "<label>年齢<input></label>"),
        ("<p>a <b>b <img></b> c</p>", "犬、CD、今", "0-0 1-2 2-4", "<p>犬、<b>CD<img></b>、今</p>"),
        ("Use <code>x</code>, now", "今、トロント。", "1-2 3-0", "今、<code>x</code>。"),
        ('It <i role="doc-pagebreak">iv</i>runs', "走る", "1-0", '<i role="doc-pagebreak">iv</i>走る'),
        ('It r<i epub:type="pagebreak">9</i>uns', "走る", "1-0", '走る<i epub:type="pagebreak">9</i>'),
        ("Use <code>x</code> now", "Bostonを使う", "", "<code>x</code>を使う"),
    ],
)
def test_tags_are_in_japanese_without_spaces(html: str, text: str, links: str, expected: str) -> None:
    assert translated(html, (text, links)) == expected


def test_text_that_was_no_tag_becomes_none() -> None:
    """A sign that the vocabulary cannot write is as it was."""
    translation = Restored("1 <five", Edits((), ()), [(Span(2, 3), Span(2, 3))], list)
    assert parse("1 <пять").render([translation]) == "1 &lt;five"


def texts(html: str) -> list[str]:
    return [passage.text for passage in parse(html).passages]


@pytest.mark.parametrize(
    ("rules", "passages"),
    [
        ({}, ["A dog", "runs fast.", "A cat"]),
        ({"keep": ["LI"]}, ["runs fast."]),
        ({"keep": ["b", "i"]}, ["A \ufffc", "runs \ufffc.", "A cat"]),
        ({"blocks": ["b"], "inline": ["ul", "li"]}, ["A", "dog", "runs fast.A cat"]),
    ],
)
def test_names_say_what_is_kept_and_what_parts(rules: dict[str, list[str]], passages: list[str]) -> None:
    html = "<li>A <B>dog</B></li><ul>runs <i>fast</i>.</ul><li>A cat</li>"
    document = parse(html, TagRules(**rules))  # type: ignore[arg-type]
    assert [passage.text for passage in document.passages] == passages
    assert unchanged(document) == html


@pytest.mark.parametrize(
    ("html", "text", "links", "expected"),
    [
        (
            "<p>A <b>big dog</b> runs.</p>",
            "Un gros chien court.",
            "0-0 1-1 2-2 3-3",
            "<p>Un <b>gros chien</b> court.</p>",
        ),
        ("the <b>red</b> car", "la voiture rouge", "0-0 2-1 1-2", "la voiture <b>rouge</b>"),
        ("the <b>red</b> <i>car</i>", "la voiture rouge", "0-0 2-1 1-2", "la <i>voiture</i> <b>rouge</b>"),
        ("<b>not</b> here", "ne pas ici", "0-0 0-1 1-2", "<b>ne pas</b> ici"),
        ("I <b>did</b> not go", "Je ne suis pas allé", "0-0 1-2 2-1 2-3 3-4", "Je ne <b>suis</b> pas allé"),
        (
            'See <a href="x?a=1&amp;b=2" title=\'"\'><i>this</i> page</a>.',
            "Voyez cette page.",
            "0-0 1-1 2-2",
            'Voyez <a href="x?a=1&amp;b=2" title=\'"\'><i>cette</i> page</a>.',
        ),
        (
            "<A HREF=/x CLASS=y >Hello</A >, world",
            "Bonjour, monde",
            "0-0 2-2",
            "<A HREF=/x CLASS=y >Bonjour</A >, monde",
        ),
        ("a <b>dog 🐶</b> runs", "un chien court", "0-0 1-1 2-2", "un <b>chien 🐶</b> court"),
        ("a 🐶 <b>dog</b>", "un chien", "0-0 1-1", "un 🐶 <b>chien</b>"),
    ],
)
def test_tags_go_where_the_aligned_words_went(html: str, text: str, links: str, expected: str) -> None:
    assert translated(html, (text, links)) == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<b>Look!</b> It is red.", "<b>Regarde donc !</b> Il est rouge."),
        ("<color=#00ff00>Look!</color> It is red.", "<color=#00ff00>Regarde donc !</color> Il est rouge."),
        ("Look! <size=20>It is red.</SIZE>", "Regarde donc ! <size=20>Il est rouge.</SIZE>"),
        ("<b>Look! It is</b> red.", "<b>Regarde donc ! Il est</b> rouge."),
    ],
)
def test_an_element_that_covers_a_sentence_covers_its_whole_translation(html: str, expected: str) -> None:
    """Even where a word of the translation attends to nothing in it."""
    document = parse(html)
    source, target = "Look! It is red.", "Regarde donc ! Il est rouge."
    first = AlignedWords(words("Look!"), words("Regarde donc !"), np.array([[0.9, 0], [0.1, 0], [0, 1]]))
    second = [[word for word in words(text) if word.start >= n] for text, n in ((source, 6), (target, 15))]
    sentences = [first, AlignedWords(second[0], second[1], np.eye(4))]
    assert document.render([restore(protect(source), target, sentences)]) == expected


@pytest.mark.parametrize(
    ("html", "text", "links", "expected"),
    [
        ("<b>Stop!</b> Go.", "Arrêtez ! Allez.", "0-0 2-2", "<b>Arrêtez !</b> Allez."),
        ("<b>Stop</b>! Go.", "Arrêtez ! Allez.", "0-0 2-2", "<b>Arrêtez</b> ! Allez."),
        ('He: "<b>Stop.</b>"', "Il : « Stop. »", "0-0 3-3", "Il : « <b>Stop.</b> »"),
        ('He: <b>"Stop."</b>', "Il : « Stop. »", "0-0 2-2 3-3", "Il : <b>« Stop. »</b>"),
        ("<b>Wait...</b> what", "Attends… quoi", "0-0 2-2", "<b>Attends…</b> quoi"),
        ("<b>(big)</b> dog", "chien (gros)", "1-2 3-0", "chien <b>(gros)</b>"),
        ("see <b>(the old) dog</b>", "see dog (the old)", "0-0 2-3 3-4 4-5 5-1", "see <b>dog (the old)</b>"),
        ("the <b>.NET</b> here", "ici .NET", "3-0 1-1 2-2", "ici <b>.NET</b>"),
        ("<b>.NET</b> here", ".NET ici", None, "<b>.NET</b> ici"),
        ("Go <b>(now)</b>, <b>... dog</b>", "Va (là), chien", "0-0 2-2 5-4", "Va <b>(là)</b>, <b>chien</b>"),
        ("<i>All of this.</i>", "Tout cela !", "0-0", "<i>Tout cela !</i>"),
        ("<a><i>All of this</i></a>.", "Tout cela.", "0-0", "<a><i>Tout cela</i></a>."),
    ],
)
def test_punctuation_is_in_an_element_if_it_was_in_it(html: str, text: str, links: str, expected: str) -> None:
    assert translated(html, (text, links)) == expected


@pytest.mark.parametrize(
    ("html", "text", "links", "expected"),
    [
        ("the <b>big</b> dog", "le chien", "0-0 2-1", "le <b>chien</b>"),  # never lost, though its word is
        ("a <b>b</b> <i>c</i>", "x", "0-0 1-0 2-0", "<i></i><b>x</b>"),
        ("a <b>!</b> c", "x ! z", "0-0 2-2", "x <b>!</b> z"),
        ("a <b>—</b> c", "x z", "0-0 2-1", "x <b></b>z"),
        ("a <b>b</b>", "", "", "<b></b>"),
        ("<span>T</span>he dog", "Le chien", "0-0 1-1", "<span>Le</span> chien"),
    ],
)
def test_an_element_never_disappears(html: str, text: str, links: str, expected: str) -> None:
    assert translated(html, (text, links)) == expected


def test_the_words_of_one_element_are_a_wall_for_its_neighbours() -> None:
    document = parse("<b>x</b> <i>y</i> z")
    [passage] = document.passages
    mass = np.array([[0.9, 0.1, 0], [0.4, 0.6, 0], [0.9, 0.1, 0], [0, 0, 1]])
    translation = Restored(
        "A B C D", protect("").edits, [], lambda: [AlignedWords(words("x y z"), words("A B C D"), mass)]
    )
    assert passage.render(translation) == "<b>A</b> <i>B</i> C D"


@pytest.mark.parametrize(
    ("html", "text", "expected"),
    [
        ("a &lt;b&gt; c", "x Boston z", "x &lt;b&gt; z"),
        ("&amp;amp; &amp; &eacute;", "& é", "&amp;amp; &amp; é"),
        ("a < b & c", "x < y & z", "x &lt; y &amp; z"),
        ("a&nbsp;b", "x\xa0y", "x\xa0y"),
        ('<a name="&quot;&eacute;">a</a>', '"x"', '<a name="&quot;&eacute;">"x"</a>'),
    ],
)
def test_entities_are_read_once_and_written_once(html: str, text: str, expected: str) -> None:
    assert translated(html, (text, None)) == expected


@pytest.mark.parametrize(
    ("html", "passages"),
    [
        ("<p>One\n two</p><p>Three", ["One two", "Three"]),
        ("<ul>\n <li>One</li>\n <li><b>Two</b></li>\n</ul>", ["One", "Two"]),
        ("One<br>two<BR/>three<hr>four", ["One", "two", "three", "four"]),
        ("a <b> b </b> c", ["a b c"]),
        ("foo<wbr>bar<!-- x -->baz", ["foobarbaz"]),
        ("foo<img src=x>bar <input> baz", ["foo bar baz"]),
        ("I love cats <img>. So <i class=icon></i>, yes <wbr/> !", ["I love cats. So, yes !"]),
        ("Hi <x id='A'/>, see <x/><y/> or <ph/>.", ["Hi \ufffc, see \ufffc or \ufffc."]),
        ("<x/>さん、<b>A<x/></b>", ["\ufffcさん、A"]),
        ('See <x id=L/>this<x/> or <b/> <bx/> <x id="CLOSE_B"/>', ["See this or"]),
        ("<a>Home</a><a>News</a>", ["Home", "News"]),
        ("<label>Home</label><label>News</label>", ["Home", "News"]),
        ("<nav><span>Home</span><span>News</span> </nav>", ["Home", "News"]),
        ("<em>Имя</em><b><i>Возраст</i></b>", ["Имя", "Возраст"]),
        ("<i>1</i><i>Open</i><i>2</i><i>Close</i>", ["1", "Open", "2", "Close"]),
        ("<p><b>The dog</b>The cat. <i>A cat</i><i>She</i>", ["The dog", "The cat. A cat", "She"]),
        ("to <i>Open</i><i>Street</i><i>Map</i>", ["to OpenStreetMap"]),
        ("<i>Open</i><i>Street</i><i>Map</i> is", ["OpenStreetMap is"]),
        ("<i>Home</i><i>News</i><i>My page</i>", ["Home", "News", "My page"]),
        ("API key<small>The dog</small>", ["API key", "The dog"]),
        ("an i<b>Phone 5</b>, Java<b>Script</b>, Mc<b>Donald</b>", ["an iPhone 5, JavaScript, McDonald"]),
        (
            "<b>H</b>TML, the <u>You</u><u>Tube</u> <i>Java</i><i>Script</i> <b>v</b>",
            ["HTML, the YouTube JavaScript v"],
        ),
        *[(f"<p><{one}>Wel</{one}><{one}>come home.</{one}>", ["Welcome home."]) for one in ("span", "ins", "b")],
        ("<b>H</b>ello<sup>[<a>1</a>][<a>2</a>]</sup> 1<sup>st</sup>", ["Hello 1st"]),
        ("<a href=x><div>One</div><div>Two</div></a>", ["One", "Two"]),
        ("A<script>if (a < b) '</p>'</script>B<style>p {}</style>", ["A", "B"]),
        ("<title>T</title><p translate=no>x<i>y</i></p><li class='a notranslate'>z</li>", ["T"]),
        (
            "<div translate=no>a<p translate=yes>b <i class=notranslate>c</i></p>d<p translate>e</p></div>f",
            ["b \ufffc", "e", "f"],
        ),
        (
            "a <i class=notranslate>b <b translate=yes>c <i translate=no>d<b translate=yes>e</b></i></b>f</i>",
            ["a", "c", "e"],
        ),
        (
            "<i translate=no><b translate=yes>a</i>b</b><code><i translate=yes>c</i></code> <i translate=yes>d</i>",
            ["\ufffcb\ufffc d"],
        ),
        ("", []),
        (" \n<p> &#32;</p>", []),
        ("<td><img></td><td><a href=x> <img> </a></td>", []),
    ],
)
def test_passages_are_what_a_browser_shows_as_one_line(html: str, passages: list[str]) -> None:
    assert texts(html) == passages


@pytest.mark.parametrize(
    ("html", "text", "expected"),
    [
        ("Use <code>a &lt; b</code> now", "Maintenant Boston", "Maintenant <code>a &lt; b</code>"),
        ("Press <KBD>Ctrl</KBD>+<kbd>C</kbd>!", "Tapez Boston !", "Tapez <KBD>Ctrl</KBD>+<kbd>C</kbd> !"),
        ('A <i translate="no">B<u>C</u></i> d', "Boston x", '<i translate="no">B<u>C</u></i> x'),
        ("A <span class='x notranslate'>B</span> d", "Boston x", "<span class='x notranslate'>B</span> x"),
        ("See <code>x</code>, https://x.org?a&b", "Boston, Chicago", "<code>x</code>, https://x.org?a&b"),
        ("See https://x.org?a&amp;b", "Boston", "https://x.org?a&amp;b"),
        ("The <code>x", "Le Boston", "Le <code>x</code>"),
        ("<% if (a > b) { %>The cat<% } %>", "Le chat", "<% if (a > b) { %>Le chat<% } %>"),
        ('Welcome to <x id="APP"/>!', "Willkommen in Boston!", 'Willkommen in <x id="APP"/>!'),
        ("Hello <x/>, how are you?", "Salut Boston, comment vas-tu ?", "Salut <x/>, comment vas-tu ?"),
        ("She saw <x/> and <y /> at home.", "彼女は家でBostonとChicagoを見た。", "彼女は家で<x/>と<y />を見た。"),
    ],
)
def test_untranslated_elements_go_along_unchanged(html: str, text: str, expected: str) -> None:
    assert translated(html, (text, "")) == expected


@pytest.mark.parametrize(
    "html",
    [
        "<code>x</code>",
        "<p> <code>f(a)</code>: <var>n</var>. </p>",
        "<pre>\n a  <b>b</b>\n</pre><svg><path d='M0'/><title>1</title></svg>",
        "<!DOCTYPE html>\n<html><head><meta charset=utf-8><script>x</script>\n</head><body>\n</body></html>\n",
        "<?xml version='1.0'?><!-- <p> -->\n<textarea> a\n b </textarea>",
        "<a href=x>\n <img src=y>\n</a> <p></p> <script>var a = '<p>",
        "<p>{name}</p>",
        "<x/> <y/>, <b>\n<z/></b>&nbsp;&gt;",
    ],
)
def test_text_without_words_comes_out_byte_for_byte(html: str) -> None:
    assert translated(html) == html


def test_white_space_around_passages_stays() -> None:
    html = "<div>\n\t<p> <b> One </b>\n</p>\r\n <!-- c --> Two <img>\n</div>"
    expected = "<div>\n\t<p> <b> Un </b>\n</p>\r\n <!-- c --> Deux <img>\n</div>"
    assert translated(html, ("Un", "0-0"), ("Deux", "0-0")) == expected


@pytest.mark.parametrize(
    ("html", "text", "links", "expected"),
    [
        ("a <img src=x> c", "x z", "0-0 1-1", "x <img src=x> z"),
        ("the red <img> car", "la voiture rouge", "0-0 2-1 1-2", "la <img> voiture rouge"),
        ("I love cats <img>.", "Я люблю кошек.", "0-0 1-1 2-2 3-3", "Я люблю кошек <img>."),
        ("Das gefällt mir <img>.", "I like that.", "0-2 1-1 2-0 3-3", "I like that <img>."),
        ("これ<img>が", "this is", "0-0", "this <img> is"),
        ("これ<wbr>。", "this.", "0-0", "this<wbr>."),
        ("word<img>, more", "mot, plus", "0-0 2-2", "mot<img>, plus"),
        ("<a><img> Home page</a> b", "Page maison b", "0-1 1-0 2-2", "<a><img> Page maison</a> b"),
        ("<i class=icon></i> Save it", "Le sauver", "0-1 1-0", "<i class=icon></i> Le sauver"),
        ("Save <i class=icon></i> it now", "Le sauver ici", "0-1 1-0 2-2", "<i class=icon></i> Le sauver ici"),
        ("bread<sup><a>[1]</a></sup> is good", "bon pain", "0-1 2-0", "bon pain<sup><a>[1]</a></sup>"),
        ("10 m<sup>2</sup>.", "10 m.", "0-0 1-1", "10 m<sup>2</sup>."),
        ("m<sub>2</sub> in H<sub>2</sub>O", "m en H2O", "0-0 1-1 2-2", "m<sub>2</sub> en H<sub>2</sub>O"),
        ("a<!-- 1 --> b <!-- 2 -->c", "x y z", "0-0 1-1 2-2", "x<!-- 1 --> y <!-- 2 -->z"),
        ("<label>Age: <input></label>", "Âge :", "0-0 1-1", "<label>Âge : <input></label>"),
        ("<p>a <b>b <img></b> c</p>", "x y z", "0-0 1-1 2-2", "<p>x <b>y <img></b> z</p>"),
        ("<b>a <i>b\n<img> </i> <img></b>\n", "x y", "0-0 1-1", "<b>x <i>y\n<img> </i> <img></b>\n"),
    ],
)
def test_images_and_comments_stay_at_their_words(html: str, text: str, links: str, expected: str) -> None:
    assert translated(html, (text, links)) == expected


@pytest.mark.parametrize(
    ("html", "text", "expected"),
    [
        ("<b><i>x</b></i>", "y", "<b><i>y</i></b>"),
        ("x</b></i>", "y", "y"),
        ("<p><b>x<p>y", None, "<p><b>x</b><p>y"),
        ("<p>x</b></p></div>", "y", "<p>y</p></div>"),
        ("<b>x</b <i>y", None, "<b>x</b <i>y"),
        ("x <b class='a>y</b>", "z", "z <b class='a>y</b>"),  # a browser shows nothing of the rest either
        ("x <", "y <", "y &lt;"),
        ("x <3 & y", "z & w", "z <3 &amp; w"),
        ("x <![if a]> y <![b[ c ]]> z", "u v z", "u <![if a]> v <![b[ c ]]> z"),
        ("x <!-- y", "z", "z <!-- y"),
    ],
)
def test_broken_markup_is_mended(html: str, text: str | None, expected: str) -> None:
    document = parse(html)
    assert (unchanged(document) if text is None else translated(html, (text, None))) == expected


@pytest.mark.parametrize(
    "piece",
    [
        *("<b>", "<b>x ", "<b></b>", "</b>", "<!--", "<![", "<a b='", "<code>", "<code><br>", "&"),
        *("<i translate=no>a<i translate=yes>", "<b translate=no><i translate=yes>b</i>c</b>"),
        *("<b>Ab", "<b>Ab</b>", "Ab</b>", "&#32;<b>Ab</b><b>Ab</b>&#32;"),
    ],
)
def test_long_nonsense_takes_no_longer_than_text(piece: str) -> None:
    html = piece * 2_000
    assert parse(unchanged(parse(html)))
