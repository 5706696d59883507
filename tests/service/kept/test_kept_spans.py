"""What is to come out of a translation as it went in is found in a text, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.kept.kept_spans import WORDS_ALONE, kept_spans
from service.text.scripts import foreign_words
from service.text.spans import Span
from tests.service.stand_ins import kept


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("See https://x.org/a?b=1&c=%20#d.", ["https://x.org/a?b=1&c=%20#d"]),
        ("(https://en.wikipedia.org/wiki/A_(b)), ok", ["https://en.wikipedia.org/wiki/A_(b)"]),
        ("www.x.fr! «http://é.fr» <ftp://a/b>", ["www.x.fr", "http://é.fr", "<ftp://a/b>"]),
        ("Write to <anna@example.com>, see <https://e.com/a>.", ["<anna@example.com>", "<https://e.com/a>"]),
        ("HTTPS://EXAMPLE.COM/A, file:///a/b.txt; See<b", ["HTTPS://EXAMPLE.COM/A", "file:///a/b.txt"]),
        ("ssh://git@host/r.git now", ["ssh://git@host/r.git"]),
        ("https://ja.wikipedia.org/wiki/日本 now", ["https://ja.wikipedia.org/wiki/日本"]),
        ("https://a.org/をご覧、https://a.org/日本 とC:\\aを開く", ["https://a.org/", "https://a.org/日本", "C:\\a"]),
        ("请访问https://x.org/a。谢谢", ["https://x.org/a"]),
        ("at https://x.org/{id}/%s", ["https://x.org/{id}/%s"]),
        ("go to example.com/a, at localhost:8000, localhost/a or localhost", ["example.com/a", "localhost:8000", "localhost/a"]),
        ("example.com:8080/a?b=c or example.com?x=1!", ["example.com:8080/a?b=c", "example.com?x=1"]),
        ("ask a.b+c@d-e.co.uk.", ["a.b+c@d-e.co.uk"]),
        ("andré@exemple.fr, メールはinfo@example.comまで", ["andré@exemple.fr", "info@example.com"]),
        ("At 192.168.1.1, 10.0.0.1:8080 or 10.0.0.0/8.", ["192.168.1.1", "10.0.0.1:8080", "10.0.0.0/8"]),
        ("2001:db8::1, 00:1A:2B:3C:4D:5E, ::1 at 12:30: a::b", ["2001:db8::1", "00:1A:2B:3C:4D:5E", "::1"]),
        ("Enter YYYY-MM-DD, DD/MM/YYYY H:mm or hh:mm:ss.SSS.", ["YYYY-MM-DD", "DD/MM/YYYY", "H:mm", "hh:mm:ss.SSS"]),
        ("2024-MM-DD, mm/yy, JJ/MM/AAAA, ДД.ММ.ГГГГ, XXX-0000", ["2024-MM-DD", "mm/yy", "JJ/MM/AAAA", "ДД.ММ.ГГГГ", "XXX-0000"]),
        ("日付はYYYY/MM/DDです。日日/月月", ["YYYY/MM/DD"]),
        ("a 35-mm film, 10 mm/h, A/B, and/or, B-52, II.A, Mm-hmm, uh-oh, AAA-rated, A.A. ООО", []),
        ("C:\\dogs\\a. and D:\\ or \\\\server\\share", ["C:\\dogs\\a", "D:\\", "\\\\server\\share"]),
        ("in C:\\Program Files (x86)\\My App\\a b", ["C:\\Program Files (x86)\\My App\\a"]),
        ("C:\\dogs\\a Dogs {\\i1} the", ["C:\\dogs\\a", "{\\i1}"]),
        ("C:\\Users. Then B\\c, C:\\a to D:\\b", ["C:\\Users", "C:\\a", "D:\\b"]),
        ("In C:\\Users You will find a\\b", ["C:\\Users"]),
        ("Open /etc/hosts, ~/.bashrc or ./run.sh", ["/etc/hosts", "~/.bashrc", "./run.sh"]),
        ("In src/main.py, a/b and/or he/she", ["src/main.py"]),
        ("Plan B:\\nWe go by C:\\New\\a.txt", ["\\n", "C:\\New\\a.txt"]),
        ("Open src\\test\\new.py, docs\\readme.txt or .\\a\\b.dll", ["src\\test\\new.py", "docs\\readme.txt", ".\\a\\b.dll"]),
        ("Title: ch001.xhtml and book.epub", ["ch001.xhtml", "book.epub"]),
        ("Not found:\\nfile.txt is gone\\n\\nSee\\nmain.py", ["\\n", "file.txt", "\\n\\n", "\\n", "main.py"]),
        ("Hi:\\n\\n@tom,\\twww.x.org\\n--help, b:\\n\\nMAX_SIZE", ["\\n\\n", "@tom", "\\t", "www.x.org", "\\n", "--help", "\\n\\n", "MAX_SIZE"]),
        ("Dogs .... 3\nCats.....4 and birds . . . . . 5, wait.... and . . .", [" .... ", ".....", " . . . . . "]),
        ("=== Dogs ===\nDate: __/__/____ ___, a → b, x->y, 1 -- 2", ["=== ", " ===", " __/__/____ ", "___", " → "]),
        ("Read report.pdf and archive.tar.gz. The .env file", ["report.pdf", "archive.tar.gz", ".env"]),
        ("v1.2.3, V2.0-rc1, 2.0.1 or ISO 9001, v8", ["v1.2.3", "V2.0-rc1", "2.0.1"]),
        ("One\n1.2.3 The dog\n1.2.3 is", ["1.2.3"]),
        ("Run it with --name, --size=3 or -x.", ["--name", "--size=3", "-x"]),
        ("Set MAX_SIZE and snake_case, __NAME__, __init__ or get()", ["MAX_SIZE", "snake_case", "__NAME__", "__init__", "get()"]),
        ("Ask @bob or @a.b! Read #python now", ["@bob", "@a.b", "#python"]),
        ("Hi :smile: and :+1: at 10:30:45", [":smile:", ":+1:"]),
        ("Order #42, 451234, A1B2C3 or XJ-9000", ["#42", "451234", "A1B2C3", "XJ-9000"]),
        ("12345-A #12345-B 12345/67890 id:5551234567", ["12345-A", "#12345-B", "12345/67890", "5551234567"]),
        (
            "123e4567-e89b-12d3-a456-426614174000, aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee",
            ["123e4567-e89b-12d3-a456-426614174000", "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"],
        ),
        ("0xDEADBEEF, 45d95c2 and d41d8cd98f00b204, effaced", ["0xDEADBEEF", "45d95c2", "d41d8cd98f00b204"]),
        ("Run `npm install` or ``a`` now, it`s", ["`npm install`", "``a``"]),
        ("all `TODO`s of `a' and `b'", ["`TODO`s"]),
        ("``Hello'' and ``goodbye'' he said", []),
        ("A:\n```python\nfor a in `b`:\n    run()\n```\nB `c`", ["```python\nfor a in `b`:\n    run()\n```", "`c`"]),
        ("{name}, {{ user.name }}, ${x}, {0}, {}, %{y}, #{z}", ["{name}", "{{ user.name }}", "${x}", "{0}", "{}", "%{y}", "#{z}"]),
        ("<% if (a > b) { %>The<% } %> <%= 5 % a > 3 %>", ["<% if (a > b) { %>", "<% } %>", "<%= 5 % a > 3 %>"]),
        ("<?= $a->b ?> <% name %> 5 <% 6, a <? b > c", ["<?= $a->b ?>", "<% name %>"]),
        ("{ name } {\\i1} {@link Foo} {color=#0f0} {/color}", ["{ name }", "{\\i1}", "{@link Foo}", "{color=#0f0}", "{/color}"]),
        ("{% if x %} {price:.2f} {n, number} {a[0].b!r}", ["{% if x %}", "{price:.2f}", "{n, number}", "{a[0].b!r}"]),
        ("%jd or %td of %pB and %p", ["%jd", "%td", "%pB", "%p"]),
        ("%<PRId64> and %#<PRIx64> of %2$<PRIu32>.", ["%<PRId64>", "%#<PRIx64>", "%2$<PRIu32>"]),
        ("\x1b[1;31mWarning\x1b[0m: it is full.", ["\x1b[1;31m", "\x1b[0m"]),
        ("Published on %B %-d at %H:%M.", ["%B", "%-d", "%H:%M"]),
        ("%arg of %#@dogs@, 50 %B, 20% a day, %argument", ["%arg", "%#@dogs@"]),
        ("%s %d %(name)s %1$s %.2f %5d %-3s %@ %lu", ["%s", "%d", "%(name)s", "%1$s", "%.2f", "%5d", "%-3s", "%@", "%lu"]),
        ("%s's (%s) %d%% %s/%s %ds %dpx.", ["%s", "%s", "%d%%", "%s/%s", "%ds", "%dpx"]),
        ("100 % sure, 50%discount, 50 %discount, 3 % de, % d, 20%", []),
        ("%n of %1 %L2 %3, %1%2 or %1% up: %v %q %p %e %T", ["%n", "%1", "%L2", "%3", "%1%2", "%1%", "%v", "%q", "%p", "%e", "%T"]),
        ("%*d %.*f %[1]s %<n>.2f %#@files@ %1$#@a@.", ["%*d", "%.*f", "%[1]s", "%<n>.2f", "%#@files@", "%1$#@a@"]),
        ("5 %1, 5%1, 50 %n, 50%e, 5 %v, %end, 10 %-20 %", []),
        ("%a% %%a%% %data% %d%%, ##a##, @@b.c@@ $$d$$ $e$ <<f>>", ["%a%", "%%a%%", "%data%", "%d%%", "##a##", "@@b.c@@", "$$d$$", "$e$", "<<f>>"]),
        ("C#-F#, a#b#, #ab and b#, ###a###", ["#ab"]),
        ("Hi \\(name), \\(u.n) $(x) \\1 or *|FNAME|*", ["\\(name)", "\\(u.n)", "$(x)", "\\1", "*|FNAME|*"]),
        ("\\(see this\\), US$(million), $(a b), a\\1b", []),
        ("$1 moved $2 to $3", ["$1", "$2", "$3"]),
        ("from $2 to $3, from $1 to $2.50, $1m to $2m, US$1 or $2", []),
        ("\\frac{a}{b} \\text{good} dog\\t{x}\\nYes{n}", ["\\frac{a}{b}", "\\text{good}", "\\t", "{x}", "\\n", "{n}"]),
        ("see %name% or :name, !name and $name", ["%name%", ":name", "!name", "$name"]),
        ("see !567, wow!12", ["!567"]),
        ("<file> <unknown> <0/> <color=#0f0> </color> a < b > c", ["<file>", "<unknown>", "<0/>", "<color=#0f0>", "</color>"]),
        ("I <3 you, 1 <3", ["<3", "<3"]),
        ("Hello! :) I'm fine ;-) :D xD, ^_^; >_< T_T ^^.", [":)", ";-)", ":D", "xD", "^_^", ">_<", "T_T", "^^"]),
        ("Sorry :( (o_o) \\o/ :'( ¯\\_(ツ)_/¯!", [":(", "(o_o)", "\\o/", ":'(", "¯\\_(ツ)_/¯"]),
        ("すみません(´・ω・`)", ["(´・ω・`)"]),
        ("うれしい:)ね", [":)"]),
        ("a:b, 10:30, x =y, C:D, xDrive, A^^B, (1), Note: (a), (in a list), ;; »:, (C:) :3 =3 :S", []),
        ("two pets :( a dog ), (a b), (D:), Colors:(\"red\"), if (dog;) cat :[ red ] (ω+1)", []),
        ("<0>One</0>, <1/>, weight <10 kg and size >20 cm", ["<0>", "</0>", "<1/>"]),
        ("a\\nb\\Nc \\t \\\" \\\\ Don\\'t \\'so\\'", ["\\n", "\\N", "\\t", '\\"', "\\\\", "\\'", "\\'"]),
        ("A dog[^1] and [[Main page]] &nbsp; &#160;", ["[^1]", "[[Main page]]", "&nbsp;", "&#160;"]),
        ("x^2 and ~5 minutes", ["x^2", "~"]),
        ("**no pair, 5* hotel, *args, 2 * 3, * one", ["**", "*", "*"]),
        ("%s%s {a}{b} {a}/{b} {host}:{port} {c}, {d}", ["%s%s", "{a}{b}", "{a}/{b}", "{host}:{port}", "{c}", "{d}"]),
        ("{n}px {n}th %dMB {n}2 {i}le {i}l'homme {0}Files {n}pxa", ["{n}px", "{n}th", "%dMB", "{n}2", "{i}", "{i}", "{0}", "{n}"]),
        ("共{n}个，%d个", ["{n}", "%d"]),
        ("Call +33 1 23 45 67 89 or (555) 987-6543, 555-1234!", ["+33 1 23 45 67 89", "(555) 987-6543", "555-1234"]),
        ("+1 (555) 123-4567 +1 555-123-4567 +15551234567 +5 10-20", ["+1 (555) 123-4567", "+1 555-123-4567", "+15551234567"]),
        ("0 800 123 456, 01 23 45 67 89", ["0 800 123 456", "01 23 45 67 89"]),
        ("Тел. 8 495 123-45-67, +7 (495) 123-45-67.", ["8 495 123-45-67", "+7 (495) 123-45-67"]),
        ("電話は03-1234-5678か03(1234)5678で", ["03-1234-5678", "03(1234)5678"]),
        ("庭で--nameと%name%と:nameと!nameと#42と@bobと$xを", ["--name", "%name%", ":name", "!name", "#42", "@bob", "$x"]),
        ("庭で192.168.1.1をx^2と~5と/usr/libと<3と:a:と #日本 へ", ["192.168.1.1", "x^2", "~", "/usr/lib", "<3", ":a:", "#日本"]),
        ("“:name” „!name“ ‘:ab ‹!ab› ¿!ab —:ab", [":name", "!name", ":ab", "!ab", "!ab", ":ab"]),
        ("{a}–{b} {a}—{b} {a}‑{b} {a}×{b} {a}…{b} {a} – {b}", ["{a}–{b}", "{a}—{b}", "{a}‑{b}", "{a}×{b}", "{a}…{b}", "{a}", "{b}"]),
        ("by -{n}% or +%d, ($%d), -$%d, €{n} or «~%s»", ["-{n}", "+%d", "$%d", "-$%d", "€{n}", "~%s"]),
        ("A-{n}, 5-{n}, - {n}, ---{n}, x=-{n} and 気温は-%d度", ["{n}", "{n}", "{n}", "{n}", "{n}", "-%d"]),
        ("-{name}, come!\n-%s\n+%d", ["{name}", "%s", "+%d"]),
        ("%'d of %1$'d, %Lf, %I64d and %qd", ["%'d", "%1$'d", "%Lf", "%I64d", "%qd"]),
        ("std::vector in C++, C# or C++17, text/html for user/repo#12", ["std::vector", "C++", "C#", "C++17", "text/html", "user/repo#12"]),
        ("print(x), range(1, 10), print(\"Hello you\"), ls(1)", ["print(x)", "range(1, 10)", 'print("Hello you")', "ls(1)"]),
        ("file(s), ami(e), jeu(x), Bild(er), text/image, he(the big, red one), a++b, user/repo", []),
        ("<@123>, <@&1> <#a|b c> <!here> <:name:1> <a:b:1> a <! b", ["<@123>", "<@&1>", "<#a|b c>", "<!here>", "<:name:1>", "<a:b:1>"]),
        ('?attr/colorPrimary or ?android:attr/a, what?yes/no, $t(girls, {"count": 3})', ["?attr/colorPrimary", "?android:attr/a", '$t(girls, {"count": 3})']),
        ("2027-01-31, ISBN 978-3-16-148410-0, 1990-2000", ["2027-01-31", "978-3-16-148410-0"]),
    ],
)  # fmt: skip
def test_each_kind_is_found(text: str, expected: list[str]) -> None:
    assert kept(text) == expected


PROSE = [
    "The START treaty was signed in 1991.",
    "LIFE IS SHORT, SO DO NOT WAIT!",
    "It is 20 °C outside, and it was 10:30:45 when she left.",
    "There is a 5 % discount, or 5% for members, on 12/05/1990.",
    "If a > b and b < c, then a + c = 10 and/or more.",
    "See below (and e.g. page 12, i.e. the 2nd one).",
    "He moved to the U.S. in 1984, at 10:30 a.m.",
    "I'm sure that Mr. O'Neil's well-known firm, AT&T, pays $5 or $99.99.",
    "She said: “Don’t go!” – and he didn’t…",
    'The "big" dog; the small one: both (and more) ran away...',
    "We're no. 1 in R&D, and COVID-19 was in the 4K video.",
    "The score was 3:1, or 2-0; pages 100-200, 1990-2000.",
    "A 1.5 million budget, 3.14 and 1,500 or 1,234,567.89.",
    "Up 10-15 %, down -5 points, +3 overall.",
    "What?! No way!!! Really...?",
    "Dear Sir/Madam, he/she will call at 5 p.m.",
    "The 90s were great, as were the 1980s and the '70s.",
    "He got an A+ in maths, and a B- in art.",
    "It's 5 o'clock * * * and I have 2 * 3 apples.",
    "The Ph.D. student lives at 221B Baker Street.",
    "Vitamin C, plan B, T-shirt, e-mail, X-ray and I/O.",
    "I paid €20, £1.50 and 100 ¥.",
    "A dog runs [sic] and the cat (Felis catus) sleeps.",
    "Room 5B is on floor no. 3, next to the M&M's.",
    "I was there.Today it is.",
    "Tom -- my friend -- is here; 'tis true.",
    "The iPhone and the YouTube app by McDonald",
    "It costs 20 cents / piece.",
    "This is _very_ important indeed.",
    "C'est : « bonjour ! », n'est-ce pas ?",
    "Il est 17 h 30, soit 5 % de plus ; voilà !",
    "L'Île de Ré, où l'œuvre de Zoë fut conçue à Noël.",
    "Va-t-il venir ? Oui, dit-elle, peut-être…",
    "Le n° 3 coûte 1 234,50 € (T.V.A. incluse).",
    "Qu'est-ce que c'est ? – Rien !",
    "M. Dupont et Mme Martin arrivent à 8h45.",
    "Aujourd'hui, j'ai vu 22 500 personnes.",
    "« Où vas-tu ? » demanda-t-il.",
    "Das ist z. B. ein „Test“, d. h. am 12.05.1990 um 10.30 Uhr.",
    "Größe, Übung, Äpfel und Öl kosten 1.234,50 Euro.",
    "Die Kund*innen und Lehrer/-innen kommen am 3. Mai.",
    "Er sagte: „Komm her!“ – und ging.",
    "1.234.567 Menschen leben in der U-Bahn-Nähe.",
    "Haupt- und Nebensätze, An- und Abreise.",
    "Was? Nein! Doch … vielleicht.",
    "Es kostet 5,- Euro bzw. 3,50.",
    "Я сказал: «Привет!» — и ушёл в 10:30.",
    "Это стоит 1 234,50 руб., т. е. 5 % от суммы.",
    "Кто-то где-нибудь, всё-таки, из-за дождя.",
    "МЫ ЖДЁМ ВАС 5 мая 1990 г. (в т. ч. детей)!",
    "Температура была -5 или +20 градусов.",
    "– Ты идёшь? – Да, иду.",
    "А/Я № три, ул. Ленина, д. 5/7, кв. 12.",
    "今日は「こんにちは」と言いました。",
    "3月5日（月）の10時30分に、東京駅で会いましょう！",
    "価格は1500円です。消費税は10%です。",
    "えっ、本当？…そうですか。",
    "ＡＢＣ株式会社の山田・花子さん",
    "犬と猫、どちらが好き？〜私は犬〜",
    "１２３人が来た。",
    "Wie bitte? -A dog?",
    "-I am here.\n-So am I.",
]


@pytest.mark.parametrize("text", PROSE)
def test_nothing_is_found_in_prose(text: str) -> None:
    assert kept(text) == []


SPANS = st.sampled_from(
    ["https://x.org/a?b=1", "tom@example.com", "192.168.1.1", "C:\\dogs\\a", "/usr/lib/a", "report.pdf", "v1.2.3"]
    + ["--name", "MAX_SIZE", "@bob", ":smile:", "A1B2C3", "123e4567-e89b-12d3-a456-426614174000", "45d95c2", "`a b`"]
    + ["{name}", "{ name }", "{\\i1}", "{@link Foo}", "{color=#0f0}", "{{x}}", "${x}", "#{x}", "{% x %}", "%s", "%1$s"]
    + ["%(name)s", "%name%", "$name", ":name", "!name", "<file>", "<0/>", "</color>", "<3", "\\n", "\\t", '\\"']
    + ["[^1]", "[[a b]]", "&nbsp;", "2027-01-31", "x^2", "%d%%", "#42", "451234", "2.0.1", "__init__"]
)
WORDS = st.lists(st.sampled_from(["the", "Dogs", "I", "über", "дом", "犬が", "LIFE", "a", "it's", "5"]), max_size=4)


@given(WORDS, st.lists(st.tuples(SPANS, WORDS.filter(bool)), max_size=4), st.sampled_from([".", "!", "?", ""]))
def test_spans_between_words_are_found_unchanged(first: list[str], rest: list[tuple[str, list[str]]], end: str) -> None:
    first = first or ["So"]  # at the start of a line, 1.2.3 is the number of a heading
    words = [*first, *(word for span, behind in rest for word in (span, *behind))]
    assert kept(" ".join(words) + end) == [span for span, _ in rest]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The name is {name}.", ["word"]),
        ("{n} files", ["word"]),
        ("{0}Files, file{n}", ["mark", "mark"]),
        ("{i}Look!{/i} It is", ["mark", "mark"]),
        ("Dog[^1] :smile: <3", ["mark", "mark", "mark"]),
        ("I love #python so much #music #dogs", ["word", "mark", "mark"]),
        ("One.\\nTwo", ["break"]),
        ("A dog ..... 3", ["break"]),
        ("Call +33 1 23 45 67 89", ["number"]),
        ("{name}さんは%dで", ["word", "word"]),
    ],
)
def test_a_span_that_touches_a_word_is_no_word(text: str, expected: list[str]) -> None:
    assert [kept_span.role for kept_span in kept_spans(text)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The &lt;br&gt; tag, &#60;b&#x3E;bold&lt;/b&gt;.", ["&lt;br&gt;", "&#60;b&#x3E;", "&lt;/b&gt;"]),
        ("See &lt;a href=&quot;/x&quot;&gt; here", ["&lt;a href=&quot;/x&quot;&gt;"]),
        (
            "Go to http://a.org?b=1&amp;c=2, {a}&amp;{b} or &lt;{c}&gt;",
            ["http://a.org?b=1&amp;c=2", "{a}&amp;{b}", "&lt;{c}&gt;"],
        ),
        ("Two dogs &amp; cats, R&amp;D, a&#38;b, &amp;File", ["&amp;", "R&amp;D", "&#38;", "&amp;"]),
        ("&quot;So&quot;", ["&quot;", "&quot;"]),
    ],
)
def test_escaped_signs_are_read_as_the_signs(text: str, expected: list[str]) -> None:
    assert kept(text) == expected


def test_an_escaped_and_is_a_sign_between_words() -> None:
    assert [kept_span.role for kept_span in kept_spans("dogs &amp; cats &amp;File, &amp; &lt;br&gt;")] == [
        "sign",
        "mark",
        "mark",
        "word",
    ]


def test_spans_of_the_caller_are_kept_before_all_others() -> None:
    text = "Use \ufffcs, \ufffc and the {big} dog"
    spans = [Span(4, 5), Span(8, 9), Span(18, 27)]
    assert [kept_span.span.of(text) for kept_span in kept_spans(text, spans)] == ["\ufffcs", "\ufffc", "{big} dog"]


PARTS = [
    *"aSx1 €/@.,:-+{}()%$`_#\u00a0<>[]^\\½₂§°m²!~&;3",
    *("www.", ".com", "localhost", "http", "://", "mailto:", "345", "A_", "__", "{%", "%}", "```", "0x", "ff-"),
    *("abcdefab-", "abcd-", "abcdefabcdef", "--", "nbsp", "\\n", "#a", "/a"),
]


@given(st.lists(st.sampled_from(PARTS)).map("".join))
def test_no_span_is_missed_in_a_text_that_looks_as_if_it_had_none(text: str) -> None:
    assert kept(text) == kept(text + "\n=")


@given(st.lists(st.sampled_from(PARTS)).map("".join))
def test_spans_are_in_order_and_apart(text: str) -> None:
    end = 0
    for kept_span in kept_spans(text):
        assert end <= kept_span.span.start < kept_span.span.end
        end = kept_span.span.end


@given(st.from_regex(WORDS_ALONE, fullmatch=True))
def test_a_text_that_need_not_be_searched_has_nothing_to_keep(text: str) -> None:
    assert kept(text + "\n=") == []


@pytest.mark.parametrize("text", ["::0", "0::a", "localhost:80", "tel 12 345", "(02) 34 56", "1.2", "4x", "a()", "!a"])
def test_a_text_whose_letters_may_be_kept_is_searched(text: str) -> None:
    assert not WORDS_ALONE.fullmatch(text)


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("en", "The word سلام عليكم, שלום or 世界。", ["سلام عليكم", "שלום", "世界"]),
        ("en", "The word мир, π and naïve Łódź, ﬁsh, e\u0301", ["мир", "π"]),
        ("en", "Say «спасибо большое» or 「ありがとう」 for 5 кг.", ["спасибо большое", "ありがとう", "кг"]),
        ("en", "Hello，my friend。Ｉ am！（tired）\u3000Two", []),
        ("ru", "Слово 世界 значит мир, the world.", ["世界"]),
        ("ja", "世界、ワールド、Ｗorld、Привет、한국어。", ["Привет", "한국어"]),
        ("xx", "The word 世界 means world.", []),
    ],
)
def test_words_in_letters_of_other_languages_are_found(language: str, text: str, expected: list[str]) -> None:
    assert [span.of(text) for span in foreign_words(text, language)] == expected


@pytest.mark.parametrize(
    "piece",
    ["{", "{{", "{a", "<", "<a", "%", "%a", "%1$", "\\", "`", "``a", "```a`", "[[", "[^", "a.", "a_", "a@", "é@a.", "a/b", "/a", "~/"]
    + ["https://", "https://x(", "www.", "mailto:", "1.", "1:", "a:1:", "1-", "+1 ", "+1-", "0 12 ", "(55) 12-", "ff-", "abc1", "A1-"]
    + ["%L", "%<a", "%#@a", "$$a", "\\(a", "*|a", "<<a", "\\ab", "$1 ", "$1.", "%1%", " -", "-+{a}"]
    + [":a", "!a ", "@a.", "#a", "--a", " -a", "$a", "$", "&a", "&amp;", "amp;&", "&lt;a ", "A&amp;", "x^", "~1,", "<3", "πa", "a()", "a.b.", "__a", "{% ", "<%", "<% ", "<?"],
)  # fmt: skip
def test_long_nonsense_takes_no_longer_than_text(piece: str) -> None:
    """Quadratic time would be a minute."""
    kept_spans(piece * 5_000, language="en")


@pytest.mark.parametrize(
    ("begin", "piece", "end"),
    [
        ("", "+" + "1" * 60 + " ", ""),
        ("", "#a", "!"),
        ("", " ", "x#"),
        ("", "\n", "x{n, plural, one {a} other {b}}"),
        ("/ ", "-", ""),
        ("/ ", "a-", ""),
        ("( ", "a.", ""),
        ("}", "\n**", "-A"),
    ],
)
def test_nonsense_between_others_takes_no_longer(begin: str, piece: str, end: str) -> None:
    kept_spans(begin + piece * (50_000 // len(piece)) + end, language="en")
