"""Sentences that we wrote, short and long and of many kinds, to record the activations of a model."""

from langcodes import Language
from langcodes.tag_parser import LanguageTagError

from manifest.schema import ANY_LANGUAGE

TEXTS: dict[str, tuple[str, ...]] = {
    "en": (
        "No.",
        "Where have you been?",
        "The weather was much better yesterday than it is today.",
        "A man in a yellow jacket is riding a horse along the beach while two children watch him.",
        "She asked him whether he had already read the book that she gave him for his birthday last week.",
        "On 14 March 2019 the company sold 3.5 million shares to an investor from New York for $27.80 each.",
        "Please send us the signed contract, a copy of your passport and the receipt before the end of the month.",
        "According to the report, which the ministry published on Monday, unemployment fell for the third time in a "
        "row, although prices went on rising and many small firms had to close.",
        "To install the program, open a terminal, go to the directory that holds the file, and enter the command.",
        '"I don\'t believe a word of it!" she cried, and slammed the door behind her.',
        "The cells are then washed twice and kept at low temperature, so that their proteins are not damaged.",
        "The court held that the right to be heard had been violated, and that the decision must be set aside.",
    ),
    "fr": (
        "Non.",
        "Où étais-tu ?",
        "Il faisait bien plus beau hier qu'aujourd'hui.",
        "Un homme en veste jaune fait du cheval sur la plage pendant que deux enfants le regardent.",
        "Elle lui a demandé s'il avait déjà lu le livre qu'elle lui avait offert la semaine dernière.",
        "Le 14 mars 2019, l'entreprise a vendu 3,5 millions d'actions à un investisseur de Lyon pour 27,80 € chacune.",
        "Veuillez nous envoyer le contrat signé, une copie de votre passeport et le reçu avant la fin du mois.",
        "Selon le rapport que le ministère a publié lundi, le chômage a baissé pour la troisième fois de suite, alors "
        "que les prix ont continué à monter et que bien des petites entreprises ont dû fermer.",
        "Pour installer le programme, ouvrez un terminal, allez dans le dossier du fichier et tapez la commande.",
        "« Je n'en crois pas un mot ! » s'écria-t-elle en claquant la porte derrière elle.",
        "Les cellules sont ensuite lavées deux fois et gardées au froid, pour que les protéines restent intactes.",
        "La cour a jugé que le droit d'être entendu avait été violé et que la décision devait être annulée.",
    ),
    "de": (
        "Nein.",
        "Wo bist du gewesen?",
        "Gestern war das Wetter viel besser als heute.",
        "Ein Mann in einer gelben Jacke reitet am Strand entlang, während ihm zwei Kinder zusehen.",
        "Sie fragte ihn, ob er das Buch schon gelesen habe, das sie ihm letzte Woche zum Geburtstag geschenkt hatte.",
        "Am 14. März 2019 verkaufte die Firma 3,5 Millionen Aktien für je 27,80 € an einen Anleger aus Hamburg.",
        "Bitte senden Sie uns den unterschriebenen Vertrag, eine Kopie Ihres Passes und die Quittung bis Monatsende.",
        "Laut dem Bericht, den das Ministerium am Montag veröffentlichte, sank die Arbeitslosigkeit zum dritten Mal in "
        "Folge, obwohl die Preise weiter stiegen und viele kleine Betriebe schließen mussten.",
        "Um das Programm zu installieren, öffnen Sie ein Terminal und geben Sie im Ordner der Datei den Befehl ein.",
        "„Davon glaube ich kein Wort!“, rief sie und schlug die Tür hinter sich zu.",
        "Die Zellen werden dann zweimal gewaschen und kühl gehalten, damit ihre Proteine keinen Schaden nehmen.",
        "Das Gericht entschied, der Anspruch auf rechtliches Gehör sei verletzt und die Entscheidung aufzuheben.",
    ),
    "ru": (
        "Нет.",
        "Где ты был?",
        "Вчера погода была гораздо лучше, чем сегодня.",
        "Мужчина в жёлтой куртке едет верхом по пляжу, а двое детей смотрят на него.",
        "Она спросила, прочитал ли он уже книгу, которую она подарила ему на прошлой неделе на день рождения.",
        "14 марта 2019 года компания продала 3,5 миллиона акций инвестору из Казани по 27,80 рубля каждая.",
        "Пожалуйста, пришлите нам подписанный договор, копию паспорта и квитанцию до конца месяца.",
        "Согласно отчёту, который министерство опубликовало в понедельник, безработица снизилась в третий раз подряд, "
        "хотя цены продолжали расти и многим небольшим предприятиям пришлось закрыться.",
        "Чтобы установить программу, откройте терминал, перейдите в папку с файлом и введите команду.",
        "«Не верю ни единому слову!» — воскликнула она и захлопнула за собой дверь.",
        "Затем клетки дважды промывают и держат на холоде, чтобы их белки не повредились.",
        "Суд постановил, что право быть выслушанным было нарушено и что решение должно быть отменено.",
    ),
    "ja": (
        "いいえ。",
        "どこに行っていたの?",
        "昨日の天気は今日よりずっと良かった。",
        "黄色い上着を着た男性が馬に乗って浜辺を進み、二人の子供がそれを見ています。",
        "彼女は、先週誕生日に贈った本をもう読んだかどうか彼に尋ねた。",
        "2019年3月14日、その会社は350万株を一株27ドル80セントでニューヨークの投資家に売却した。",
        "署名した契約書、パスポートの写し、領収書を月末までにお送りください。",
        "月曜日に省が発表した報告書によると、物価が上がり続け、多くの小さな会社が廃業に追い込まれたものの、"
        "失業率は三回続けて下がった。",
        "プログラムをインストールするには、端末を開き、ファイルのあるディレクトリに移動して、コマンドを入力します。",
        "「一言も信じない!」と彼女は叫び、ドアを乱暴に閉めた。",
        "その後、タンパク質が壊れないように、細胞は二回洗われ、低温で保存される。",
        "裁判所は、意見を述べる権利が侵害されたとして、決定を取り消すべきだと判断した。",
    ),
}
"""The sentences by language."""


def texts_in(code: str) -> tuple[str, ...]:
    """Return the sentences in a language, by the code that a model has for it: fr, fra, fra_Latn, fr_XX; those in all
    languages for a model that is not told which one it reads."""
    if code == ANY_LANGUAGE:
        return tuple(text for texts in TEXTS.values() for text in texts)
    try:
        return TEXTS.get(Language.get(code).language or "", ())
    except LanguageTagError:  # ROMANCE
        return ()
