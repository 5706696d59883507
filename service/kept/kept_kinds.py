"""Patterns of spans that stay byte for byte in a translation, whatever the model's vocabulary.

Signs and words that a vocabulary cannot write are found in unwritable.py.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from service.text.scripts import JAPANESE, LETTER

Role = Literal["word", "number", "sign", "mark", "break", "shortcut"]
"""The role of a span in its sentence: a word; a number; a sign that the model reads as "&"; a mark, without which the
sentence is complete (a tag, an emoji); the end of a line; or the mark of a shortcut's letter."""


@dataclass(frozen=True)
class KeptKind:
    """A kind of span. Every such span has one of the strings in `hint`; a text without them is not searched."""

    name: str
    hint: Sequence[str]
    pattern: re.Pattern[str]
    role: Role = "word"


def _kind(name: str, hint: Sequence[str], pattern: str, role: Role = "word") -> KeptKind:
    return KeptKind(name, hint, re.compile(pattern.replace(r"\w", _SPACED), re.VERBOSE), role)


_SPACED = (
    r"0-9A-Z_a-z\u00aa\u00b2\u00b3\u00b5\u00b9\u00ba\u00bc-\u00be\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u058f"
)
"""The letters that \\w matches below: those of scripts with spaces between words. Japanese may touch a span."""
_NOT_IN_WORD = rf"(?<!{LETTER})"
_END_OF_WORD = rf"(?!{LETTER})"
OPEN = rf"(?<![^\s(\[\"'«“„‘‚‹|¿¡—–{JAPANESE}\u3001-\u303f\uff00-\uff65])"
"""The place before a span: not after a letter, nor after most signs."""
_LAST = r"(?<![.,;:!?'’…*\]])"
"""Punctuation at the end of an address belongs to its sentence."""
_IN_ADDRESS = rf"""
    (?:[^\s<>"(){{}}«»“”\u3000-\u303f{JAPANESE}\uff00-\uffef] | \([^\s()<>]*\) | \{{[^\s{{}}]*\}}
      | (?<=[/=_])(?:[{JAPANESE}]+(?=[/=_?&\#])|[\u3005\u30a1-\u30ff\u3400-\u9fff]+(?=\s|$)))"""
"""Characters of an address. It never ends in hiragana, in which the sentence continues."""
FLAGS = r"[-+0'\#]{0,4}(?:\d{0,4}|\*)(?:\.(?:\d{1,4}|\*))?"
_POSITION = r"(?:\d{1,2}\$|\[\d{1,2}\])?"
_NO_PERCENTAGE = r"(?:(?<!\d[ \u00a0\u202f])|(?<=%\d[ ])|(?<=%[L\d]\d[ ]))"
"""The place before a conversion: not after a number, as in "50 %"; but "%1 %2"."""
_PRINTF = rf"""
    (?:%{_POSITION}{FLAGS}(?:hh?|ll?|[zjtqL]|I(?:32|64))?[diufgxXsc@]
      |{_NO_PERCENTAGE}%(?:{_POSITION}{FLAGS}(?:[enqTv]|p[A-Z]?){_END_OF_WORD}|L?\d{{1,2}}(?:%(?![\w%]))?(?![\w$])))"""
_OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_HEX = "[0-9a-fA-F]{1,4}"
_SAME = rf"[^\W\d_{JAPANESE}]"
"""A letter that is repeated in the form of a date or code, such as YYYY."""
_TOP_LEVEL = "com|org|net|edu|gov|info|io|dev|app|jp|ru|de|fr|uk|eu"
_IN_NAME = r"[^\s\\<>{}\"|*?:,;]"
"""A character of a word in the name of a folder."""
_EXTENSION = (
    "txt|md|rst|pdf|docx?|xlsx?|pptx?|odt|csv|tsv|json|ya?ml|toml|xml|x?html?|css|s?css|[jt]sx?|py|rb|php|go|rs|java|kt"
    "|c|cc|cpp|h|hpp|cs|sh|bat|ps1|exe|dll|so|jar|apk|msi|dmg|iso|zip|t?gz|tar|7z|rar|bz2|xz|png|jpe?g|gif|svg|webp"
    "|bmp|ico|tiff?|mp[34]|wav|ogg|flac|mkv|avi|mov|webm|srt|ass|vtt|ini|cfg|conf|env|log|lock|sql|db|bak|tmp|po|pot|epub"
)
_IN_EMOTICON = r"[^\s()\uff08\uff09]"
KINDS = (
    _kind(  # `npm install`, ``a ` b``, ```fenced```
        "code",
        "`",
        rf"""{_NOT_IN_WORD}(?<!`)```(?:[^`]|`(?!``))+```(?!`)
          | {_NOT_IN_WORD}(?<!`)(?P<ticks>`{{1,3}})(?!`)(?:(?!(?P=ticks))[^\n])+
            (?:(?P=ticks)(?!{LETTER})|(?<=[^\s(])(?P=ticks))(?!`)""",
    ),
    _kind(  # https://x.org/a?b=1, www.x.org, <https://x.org>
        "url",
        ":.",
        rf"""(?P<angle><)?(?:(?i:https?|(?<![a-z0-9])(?:ftp|sftp|ssh|git|file|wss?))://|{_NOT_IN_WORD}www\.)
             {_IN_ADDRESS}+{_LAST}(?(angle)>)""",
    ),
    _kind(  # tom@example.com
        "e-mail",
        "@",
        rf"""(?P<angle><)?(?:mailto:)?{_NOT_IN_WORD}(?<![.%+-])(?:{LETTER}|[.%+-])+
             @(?:{LETTER}|-)+(?:\.(?:{LETTER}|-)+)+(?(angle)>)""",
    ),
    _kind(  # example.com/a, localhost:8000
        "host",
        ".t",
        rf"""(?<![A-Za-z0-9_.@-])(?:[A-Za-z0-9-]+\.)+(?:{_TOP_LEVEL})(?![A-Za-z0-9_-])
               (?::\d{{1,5}})?(?:[/?\#]{_IN_ADDRESS}*{_LAST})?
          | {_NOT_IN_WORD}localhost(?::\d{{1,5}}(?:[/?\#]{_IN_ADDRESS}*{_LAST})?|/{_IN_ADDRESS}*{_LAST})""",
    ),
    _kind(  # C:\My dogs, \\server\share, /usr/lib, ./a/b, src/main.py, src\main.py; in "Plan B:\nWe go" a line ends
        "path",
        "\\/",
        rf"""(?<![\w?])\?(?:[a-z][\w.]*:)?[a-z]+/[A-Za-z_][\w.]*  # ?attr/colorPrimary, of Android
          | {_NOT_IN_WORD}(?<![/.-])[\w.-]+/[\w.-]+\#\d{{1,9}}{_END_OF_WORD}  # user/repo#12
          | {_NOT_IN_WORD}(?<![/.-])(?:application|audio|font|image|message|multipart|text|video)/(?:{_EXTENSION}|plain
            |javascript|mpeg|octet-stream|form-data|[\w-]+\+(?:json|xml|zip)|(?:x-|vnd\.)[\w.+-]+){_END_OF_WORD}
          | {_NOT_IN_WORD}[A-Za-z]:\\(?![nrt](?:\\[nrt]|[A-ZÀ-ÖØ-ÞА-ЯЁ]))
            (?:(?:[^\s<>"|*?\u3000-\u309f]
              |(?<![.,;:!?\\])[ ](?=[A-Z(\d]{_IN_NAME}{{0,30}}(?:[ ]{_IN_NAME}{{1,30}}){{0,2}}\\))+{_LAST})?
          | (?<![\w\\])\\\\[A-Za-z][\w.-]+(?:\\[\w.$-]+)+
          | (?<![\w/.>~<])(?:~|\.{{1,2}})?/[A-Za-z_.](?:[\w.@%+-]|/(?=[\w]))+(?:(?<=[a-z0-9_])/)?(?<![.])
          | {_NOT_IN_WORD}(?<![/.-])(?:[A-Za-z0-9_.-]+/)+[A-Za-z0-9_-]+\.(?:{_EXTENSION}){_END_OF_WORD}
          | {_NOT_IN_WORD}(?<![\\.-])(?![\w]+\\[nt][\w]*+\.)(?:[A-Za-z0-9_.-]+\\(?![nrt][A-ZÀ-ÖØ-ÞА-ЯЁ]))+
            [A-Za-z0-9_-]+\.(?:{_EXTENSION}){_END_OF_WORD}""",
    ),
    _kind(  # <% if (a > b) { %>; <%= x %> and <% x %> are words
        "template code", "<", r"<%(?!=|\s*+[\w.]*+\s*+%>)[^%\n]{0,400}+(?:%(?!>)[^%\n]{0,400}+){0,9}+%>", "mark"
    ),
    _kind(  # {name}, {{ x }}, ${x}, #{x}, %{x}, {% if x %}, {\i1}, {color=#0f0}, \text{x}
        "braces", "{", r"(?:[$%\#@]|\\[a-z]{2,20}\*?)?\{(?:[^{}\n]|\{(?:[^{}\n]|\{[^{}\n]{0,200}\}){0,200}\}){0,400}\}"
    ),
    _kind(  # \(name), $(name), \1, $t(name)
        "reference",
        "\\$",
        r"\$t\([^()\n]{1,200}\) | (?:\\|(?<![\w$])\$)\([A-Za-z_][\w.]{0,80}(?:\(\))?\) | (?<![\w\\])\\[1-9](?![\w])",
    ),
    _kind("color of a terminal", "\x1b", r"\x1b\[[0-9;]{0,20}m", "mark"),  # of gettext's messages and logs
    _kind("merge tag", "|", r"\*\|[^|\n]{1,80}\|\*"),  # *|NAME|*, of Mailchimp
    _kind("wiki link", "[", r"\[\[[^\[\]\n]{1,80}\]\]"),  # [[Main page]]
    _kind("footnote", "^", r"\[\^[^\[\]\s]{1,40}\]", "mark"),  # [^1]
    _kind(  # :) ;-) :'( :D =) xD, ^_^ >_< T_T ^^, \\o/, (^_^), <3; pets :( a dog ), (C:) and (a_b) have none
        "emoticon",
        (*":;=_<ω▽∀‿", "xD", "XD", "^^", "\\o/"),
        rf"""(?:(?<![^\s{JAPANESE}。\uff01\uff1f])(?: (?:<?[:;][-'^]{{0,2}}|=)(?:\)+|\(+(?![^()\n]*\)))
                | <?[:;][-^]?[DPpOo/|*] | [xX]D+ | \\o/ | \^{{2}} | (?P<eye>[<>^TQ;*-])_+(?:(?P=eye)|[<>])
                | [¯\\]\S?_[(\uff08]{_IN_EMOTICON}{{1,3}}[)\uff09]_\S?[/¯]{{1,2}} )
            | (?<![\w<])<3+ | [(\uff08](?:(?P<both>[^\s()\w]|[oOTQ])_+(?P=both)|>_+<)[)\uff09]
            | [(\uff08](?={_IN_EMOTICON}{{0,12}}[ω▽∀‿])(?!{_IN_EMOTICON}*[A-Za-z\d]){_IN_EMOTICON}{{3,12}}[)\uff09]
            )(?![\w=/\\(<>-])""",
        "mark",
    ),
    _kind(  # <file>, </b>, <0/>, <color=#0f0>, <a href="x">, <%= x %>, <!-- x -->, <<name>>, <@12>, <#a|b>, <:a:1>
        "angle brackets",
        "<",
        r"""<<[A-Za-z_][\w.-]{0,80}>>
          | <[@\#!:][^<>\s|]{1,80}(?:\|[^<>\n]{1,80})?>
          | <(?:/?[A-Za-z][^<>\n]{0,200} | /?\d[^<>\s]{0,200} | !--[^<>]{0,200}--
          | %[^%\n]{0,400}+(?:%(?!>)[^%\n]{0,400}+){0,9}+% | \?[^?\n]{0,400}+(?:\?(?!>)[^?\n]{0,400}+){0,9}+\?)>""",
    ),
    _kind("entity", "&", r"&(?:[A-Za-z]{2,10}\d{0,2}|\#\d{2,6}|\#x[0-9A-Fa-f]{2,6});", "mark"),  # &nbsp;
    _kind("line break", "\\", r"(?:(?<!\\)\\[nNrt])+", "break"),  # and a tab, which ends a column
    _kind(  # "Index ..... 12", "=== News ===", "Date: ___/___", "Home → Office"
        "row of signs",
        ("....", ". .", "===", "***", "~~~", "###", "+++", "---", "__", *"→⇒➔➜➡⟶"),
        r"""[ ]?(?: (?<!\S)\.{4,}(?!\S) | \.{5,} | \.(?:[ ]\.){3,} | (?<!\S)(?P<same>[=*~#+-])(?P=same){2,}(?!\S)
                | _{2,}(?:[/.:-]_{2,})+ | _{3,} | (?<=\S[ ])[→⇒➔➜➡⟶]\ufe0f?(?=[ ]\S) )[ ]?""",
        "break",
    ),
    _kind(  # \", \u00e9; in Don\'t it is an apostrophe
        "escape", "\\", r"\\(?:[\\vfh\"0]|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|'(?!(?<=[\w]\\')[\w]))", "mark"
    ),
    _kind(  # %name%, ##name##, @@name@@, $$name$$
        "name between signs",
        "%#@$",
        r"(?<![\w%\#@$])(?P<signs>(?P<sign>[%\#@$])(?P=sign)?)[A-Za-z_][\w.-]{0,80}(?P=signs)(?![\w%\#@$])",
    ),
    _kind(  # %s, %1$s, %(name)s, %<PRId64>, %.2f, %*d, %#@a@, %arg, %1, %%; "50 %discount", "100%s" are prose
        "printf",
        "%",
        rf"""(?<!%){_NOT_IN_WORD}%(?:\([^\s()]{{1,80}}\)|<[^\s<>]{{1,80}}>){FLAGS}[diufgxXsc]
          | (?<!%){_NOT_IN_WORD}%{_POSITION}{FLAGS}<PRI[a-zA-Z0-9]{{1,9}}>
          | (?<!%){_NOT_IN_WORD}%(?:(?:\d{{1,2}}\$)?\#@[\w]{{1,80}}@|arg{_END_OF_WORD})
          | (?<!%){_NOT_IN_WORD}{_NO_PERCENTAGE}(?:{_PRINTF})(?:{_PRINTF}|%%)*
          | (?<!%)(?<!\d)(?:{_PRINTF})(?:{_PRINTF}|%%)*{_END_OF_WORD} | %%""",
    ),
    _kind(  # %Y-%m-%d, %B %-d, %I:%M%p
        "strftime", "%", rf"(?<!%){_NOT_IN_WORD}{_NO_PERCENTAGE}(?:%[-_^0]?[A-Za-z])+{_END_OF_WORD}"
    ),
    _kind("$name", "$", r"(?<![\w$])(?:(?<!\d[ \u00a0\u202f])|(?=\$[a-z_]))\$[A-Za-z_][A-Za-z0-9_]{0,80}"),
    _kind(":code:", ":", r"(?<![\w:]):[a-z+-][a-z0-9_+-]*:(?![\w:])", "mark"),  # :smile:
    _kind(":name", ":", rf"{OPEN}:[a-z_][a-z0-9_]+(?![\w:])"),  # of Laravel
    _kind("!name", "!", rf"{OPEN}!(?:[a-z_][a-z0-9_]+|\d{{1,9}})(?![\w!])"),  # of Drupal, and !12 of GitLab
    _kind("@name", "@", r"(?<![\w@.])@[A-Za-z_](?:[\w-]|[./](?=[\w])){0,80}"),
    _kind("#tag", "#", rf"(?<![\w&#])\#(?!\d)[\w]{{2,80}}|(?<!\S)\#[{JAPANESE}][\w{JAPANESE}]{{1,80}}"),
    _kind(  # --name, --name=x, -x behind a word
        "flag", "-", rf"{OPEN}--[a-z][\w-]*(?:=[^\s,;)\]]+)?(?<!-)(?![\w-])|(?<=[^\s.!?:;,–—-]\ )-[A-Za-z](?![\w'’-])"
    ),
    _kind("__NAME__", "_", rf"{_NOT_IN_WORD}__[A-Za-z][A-Za-z0-9_]{{0,80}}__{_END_OF_WORD}"),
    _kind(  # MAX_SIZE, snake_case, getName(), f(x), range(1, 9), std::vector, C++, C#; file(s) and jeu(x) are words
        "identifier",
        "_(:+#",
        rf"""{_NOT_IN_WORD}[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+(?:\(\))?{_END_OF_WORD}
          | {_NOT_IN_WORD}[A-Za-z_][A-Za-z0-9_.]{{0,80}}\((?:[b-df-hj-mpqu-wyz] | (?<!u\()x
              | (?=[^()\n]*["'=_\d,])(?![^()\n"']*[a-z]\ [a-z])[^()\n]{{1,80}})?\){_END_OF_WORD}
          | {_NOT_IN_WORD}[A-Za-z_][\w]+(?:::~?[A-Za-z_][\w]+)+(?:\(\))?
          | {_NOT_IN_WORD}(?<![+-])(?:[A-Z][A-Za-z]*\+\+\d{{0,2}}|[A-Z]\#)(?![\w+\#-])""",
    ),
    _kind(  # report.pdf, archive.tar.gz, .env
        "file name",
        ".",
        rf"""{_NOT_IN_WORD}(?<![.@/-])[A-Za-z0-9][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*\.(?:{_EXTENSION}){_END_OF_WORD}
             (?!\.[\w]) | (?<![\w.])\.(?:env|gitignore|bashrc|htaccess)\b""",
    ),
    _kind("UUID", "-", rf"{_NOT_IN_WORD}[0-9a-fA-F]{{8}}(?:-[0-9a-fA-F]{{4}}){{3}}-[0-9a-fA-F]{{12}}{_END_OF_WORD}"),
    _kind(  # 192.168.1.1, with a port or a mask; 2001:db8::1, 00:1A:2B:3C:4D:5E; 10:30:45 is a time
        "IP or MAC address",
        ".:",
        rf"""{_NOT_IN_WORD}(?<!\d[.,:/])(?<![+-]){_OCTET}(?:\.{_OCTET}){{3}}
               (?:[:/]\d{{1,5}})?(?![\w/]|[.,:]\d)
          | {_NOT_IN_WORD}(?<!:)(?=[a-fA-F:]{{0,32}}\d)
            (?:{_HEX}(?::{_HEX}){{3,7}} | (?:{_HEX}(?::{_HEX}){{0,6}})?::{_HEX}(?::{_HEX}){{0,6}})
            (?!{LETTER}|:|[.,]\d)""",
    ),
    _kind(  # v1.2, 2.0.1-rc1; 12.05.1990 is a date, 1.234.567 a number
        "version",
        ".",
        rf"""{_NOT_IN_WORD}[vV]\d{{1,4}}(?:\.\d{{1,5}})+(?:-[a-z]+(?:\.?\d{{1,4}})?)?{_END_OF_WORD}
          | {_NOT_IN_WORD}(?<![.,:/+-])(?!\d{{1,2}}\.\d{{1,2}}\.\d{{4}}(?!\d))(?!\d{{1,3}}(?:\.\d{{3}})+(?!\d))
            \d{{1,5}}(?:\.\d{{1,5}}){{2,4}}(?:-[a-z]+(?:\.?\d{{1,4}})?)?(?!{LETTER}|[.,:/-]\d)""",
    ),
    _kind(  # +33 1 23 45 67 89, (555) 987-6543, 0 800 123 456, 8 495 123-45-67, 03(1234)5678
        "telephone number",
        "0123456789",
        rf"""{_NOT_IN_WORD}(?<![.,:/-])(?:
            (?:tel:)?\+(?=(?:[^\d\n]{{0,2}}\d){{7}})\d{{1,4}}+(?:[ \u00a0.-]?\(?\d{{1,8}}+\)?){{1,6}}
          | [(（]\d{{2,5}}[)）][ \u00a0]?\d{{2,4}}(?:[ \u00a0－-]\d{{2,4}})+ | \d{{3}}-\d{{4}}
          | 0\d{{1,4}}[(（]\d{{1,4}}[)）]\d{{3,4}} | 0\d{{0,4}}(?:[ \u00a0]\d{{2,8}}){{2,6}}
          | 8[ \u00a0]\(?\d{{3}}\)?[ \u00a0]\d{{3}}-\d\d-?\d\d
          )(?!{LETTER}|[/-]|[.,:]\d)""",
        "number",
    ),
    _kind(  # 2027-01-31, 978-3-16-148410-0, 03-1234-5678; 1990-2000 is a range
        "digits with hyphens",
        "-－−‐ー",
        rf"{_NOT_IN_WORD}(?<![.,:/-])\d{{1,9}}(?:[-－−‐ー]\d{{1,9}}){{2,8}}(?!{LETTER}|[/-]|[.,:]\d)",
        "number",
    ),
    _kind(  # YYYY-MM-DD, H:mm, 2024-MM-DD, XXX-0000; a 35-mm film, mm/h and A/B are prose
        "form of a date or code",
        "-/.:",
        rf"""{_NOT_IN_WORD}(?<![.:/-])(?=(?:[\w]+[-/.:]){{0,6}}?(?:(?P<triple>{_SAME})(?P=triple){{2}}
               |(?P<double>{_SAME})(?P=double)[-/.:](?:[\w]+[-/.:]){{0,6}}?(?P<other>{_SAME})(?P=other)
               |{_SAME}:(?P<minute>{_SAME})(?P=minute)))
             (?:(?P<first>{_SAME})(?P=first)*|\d{{1,4}})
             (?:[-/.:](?:(?P<next>{_SAME})(?P=next)*|\d{{1,4}})){{1,6}}(?!{LETTER}|[-/:][\w])""",
    ),
    _kind(  # 45d95c2, 0xDEADBEEF
        "hash",
        "0123456789",
        rf"""{_NOT_IN_WORD}(?:0x[0-9a-fA-F]{{2,}}
          | (?=[a-f]{{0,40}}\d)(?=\d{{0,40}}[a-f])[0-9a-f]{{7,}}){_END_OF_WORD}""",
    ),
    _kind(  # A1B2C3, XJ-9000, 12345-A; COVID-19 and 4K are words
        "code",
        "0123456789",
        rf"""{_NOT_IN_WORD}(?<![-.,])(?!\d+[A-Z](?![A-Z\d-]))(?=[A-Z-]{{0,40}}\d)(?=[\d-]{{0,40}}[A-Z])
             (?=(?:[A-Z-]*\d){{3}}|[A-Z]+\d+[A-Z]+\d|\d+[A-Z]+\d+[A-Z])[A-Z0-9]+(?:-[A-Z0-9]+)*(?<=....)
             (?!{LETTER}|-)""",
    ),
    _kind(  # #42, 451234, id:5551234567
        "order number",
        "0123456789",
        rf"""(?<![\w.,/&-])\#\d+(?:-[A-Z0-9]+)*{_END_OF_WORD}
          | {_NOT_IN_WORD}(?<![.,/+-])\d{{5,}}(?:[/-][A-Z0-9]+)*(?!{LETTER}|[.,/-]?\d)""",
        "number",
    ),
    _kind("formula", "^", r"(?<![\w^])[\w]+(?:\^[\w]+)+(?![\w^])"),  # x^2
    _kind(  # **kwargs, 5*: asterisks of emphasis are taken out before
        "asterisks", "*~", r"\*{2,} | ~{2,} | (?<![\w*\\])\*(?=[\w]) | (?<=[\w])\*(?![\w*])", "mark"
    ),
    _kind("about", "~", r"(?<![\w~/])~(?=[ ]?\d)", "mark"),  # ~5: as a number it would be read without its unit
)
"""If two spans begin at the same place, the kind listed first is kept."""
