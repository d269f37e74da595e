# ruff: noqa: E501, RUF001 (words in other scripts)
"""Detect names behind labels in Cyrillic, Greek, Hebrew, Arabic, Devanagari, Thai, Chinese, Japanese and Korean."""

from collections.abc import Iterator

from tracemill.privacy.core.lazy_pattern import LazyPattern
from tracemill.privacy.core.rule import Detector, Span, TextView, make_probed_detector

_SEPARATOR = r"[\"'*_\])]{0,3}[ \t]{0,3}[:=|\uff1a][ \t\u3000]{0,4}[\"'*_|(]{0,3}[ \t]{0,2}"
_END = r"(?=[\s\"'|,;(<\u3001\uff0c\u3002\uff08\\\x1b]|\.?$|\.\s)"


def _words_of(capital: str, letters: str) -> str:
    """Return the pattern of one to four words of a script."""
    return rf"{capital}{letters}(?:[ -](?:{capital}{letters}|{capital}\.)){{0,3}}"


def _first_and_last_of(capital: str, letters: str) -> str:
    """Return the pattern of two to four words of a script, none of them an initial."""
    return rf"{capital}{letters}(?:[ -]{capital}{letters}){{1,3}}"


_CYRILLIC = "[А-ЯЁ-ЏҐ]", "[а-яё-џґ’]{1,24}"
_GREEK = "[Α-ΩΆΈ-Ώ]", "[α-ωά-ώΐΰϊϋ]{1,24}"
_CYRILLIC_NAME = rf"(?:[А-ЯЁ-ЏҐ]\. ?){{0,2}}{_words_of(*_CYRILLIC)}(?: [А-ЯЁ-ЏҐ]\.){{0,2}}"
# The words of a label and the pattern of a name, by script.
_SCRIPTS = (
    (
        r"(?i:(?<!\w)(?:фио|ф\. ?и\. ?о\.?|піб|п\. ?і\. ?б\.?|имя|ім['\u2019]я|имена?|име и презиме|име и фамилия|фамилия|прізвище|презиме|отчество|клиент\w{0,2}|клієнт\w{0,2}|пациент\w{0,2}|пацієнт\w{0,2}|покупател\w{1,3}|покупець|получател\w{0,3}|одержувач|отримувач|отправител\w{1,3}|відправник|подател"
        r"|(?:контактное|контактна|контактне) (?:лицо|особа)|лице за контакт|контакт|контакт особа|студент\w{0,2}|ученик|учень|ученица|учениця|истец|позивач|ищец|ответчик|відповідач|ответник|тужилац|тужени|гость|гість|гост|врач|лікар|лекар|заказчик|замовник|владелец|власник|собственик|власник|сотрудник|працівник|співробітник|служител|автор"
        r"|арендатор|орендар|наемател|заявител\w|заявник|представител\w|представник|директор|руководител\w|керівник|преподаватель|викладач|учител\w|вчитель|свидетел\w|свідок|судья|суддя|адвокат|нотариус|нотаріус|мать|отец|мати|батько|майка|баща|пассажир|пасажир|пътник|кому|от кого|купувач|купац|прималац|пошиљалац|собственник|абонент|плательщик|платник|страхователь|подпись|підпис|исполнитель|виконавець|ответственный|відповідальний))",
        _CYRILLIC_NAME,
    ),
    (
        r"(?i:(?<!\w)(?:όνομα|ονοματεπώνυμο|επώνυμο|πελάτης|πελάτισσα|ασθενής|παραλήπτης|αποστολέας|μαθητής|μαθήτρια|φοιτητής|φοιτήτρια|επισκέπτης|ι?γ?ιατρός|υπεύθυνος|επικοινωνία|άτομο επικοινωνίας|συγγραφέας|δικαιούχος|αιτών|αιτούσα|εναγόμενος|ενάγων|ενοικιαστής|ιδιοκτήτης|αγοραστής|πωλητής|υπάλληλος|επιβάτης|κάτοχος|μάρτυρας|δικηγόρος))",
        _words_of(*_GREEK),
    ),
    (
        r"(?<!\w)(?:שם(?: מלא| פרטי| משפחה| הלקוח| המטופל)?|ה?לקוח(?:ה)?|ה?מטופל(?:ת)?|ה?נמען|לכבוד|ה?שולח|ה?תלמיד(?:ה)?|סטודנט(?:ית)?|ה?אורח(?:ת)?|ה?רופא(?:ה)?|איש קשר|ה?תובע(?:ת)?|ה?נתבע(?:ת)?|ה?עובד(?:ת)?|ה?מחבר(?:ת)?|ה?מבוטח(?:ת)?|ה?שוכר|ה?בעלים|ה?מבקש(?:ת)?)",
        r"[א-ת][א-ת'\u05f3-]{1,20}(?: [א-ת][א-ת'\u05f3-]{1,20}){0,3}",
    ),
    (
        r"(?<!\w)(?:الاسم(?: الكامل| الأول)?|اسم(?: العميل| المريض| الطالب| المستلم| العائلة| صاحب الحساب)?|ال(?:عميل|مريض|مستلم|مرسل|طالب|ضيف|طبيب|مدعي|مدعى عليه|موظف|مؤلف|مالك|مستأجر|مشتري|بائع|مسافر)ة?|(?:جهة|مسؤول) الاتصال|نام(?: و نام خانوادگی| خانوادگی)?|نام بیمار|مشتری|بیمار|گیرنده)",
        r"[\u0621-\u064a\u067e-\u06d3]{2,20}(?: [\u0621-\u064a\u067e-\u06d3]{2,20}){0,4}",
    ),
    (
        r"(?<!\w)(?:(?:पूरा )?नाम|ग्राहक|मरीज़?|रोगी|छात्रा?|प्राप्तकर्ता|अतिथि|संपर्क(?: व्यक्ति)?|ग्राहक का नाम|पिता का नाम|कर्मचारी|लेखक|আ?নাম|পুরো নাম|রোগী|பெயர்)",
        r"[\u0900-\u0963\u0980-\u09fe\u0b80-\u0bff]{2,20}(?: [\u0900-\u0963\u0980-\u09fe\u0b80-\u0bff]{2,20}){0,3}",
    ),
    (
        r"(?:ชื่อ(?:-นามสกุล|ลูกค้า|ผู้ป่วย|ผู้รับ|ผู้ติดต่อ|-สกุล)?|นามสกุล|ลูกค้า|ผู้ป่วย|ผู้รับ|ผู้ส่ง|นักเรียน|นักศึกษา|ผู้ติดต่อ|แพทย์)",
        r"[\u0e01-\u0e4e]{2,24}(?: {1,2}[\u0e01-\u0e4e]{2,24}){0,3}",
    ),
    (
        r"(?:姓名|名字|联系人|聯絡人|聯繫人|收件人|收貨人|收货人|寄件人|发件人|發件人|患者|病人|客户|客戶|顾客|顧客|学生|學生|学员|作者|负责人|負責人|经办人|承办人|原告|被告|持卡人|户名|戶名|申请人|申請人|医生|醫生|医师|醫師|老师|老師|家长|監護人|监护人|乘客|旅客|乘机人|租客|承租人|出租人|房东|買方|买方|卖方|员工|員工|法定代表人|法人|投保人|被保险人|受益人|业主|证人|法官|律师|律師|配偶|父亲|母亲|入住人|订票人|預訂人)(?:姓名|名称)?",
        r"[王李张張刘劉陈陳杨楊赵趙黄黃周吴吳徐孙孫胡朱高林何郭马馬罗羅梁宋郑鄭谢謝韩韓唐冯馮于董萧蕭程曹袁邓鄧许許傅沈曾彭吕呂苏蘇卢盧蒋蔣蔡贾賈丁魏薛叶葉阎閻余潘杜戴夏钟鍾汪田任姜范方石姚谭譚廖邹鄒熊金陆陸郝孔白崔康毛邱秦江史顾顧侯邵孟龙龍万萬段雷钱錢汤湯尹黎易常武乔喬贺賀赖賴龚龔文庞樊兰殷施陶洪翟安颜倪严牛温芦季俞章鲁葛伍韦申尤毕聂丛焦向柳邢路岳齐梅莫庄辛管祝左涂谷祁时舒耿牟卜詹关苗凌费纪靳盛童欧甄项曲成游阳裴席卫查屈鲍位覃霍翁隋植甘景薄单包司柏宁柯阮桂闵欧阳司马上官诸葛夏侯][一-鿿]{1,3}",
    ),
    (
        r"(?:氏名|名前|お名前|ご氏名|宛名|担当者?|担当医|受取人|患者(?:名|様)?|顧客(?:名)?|お客様(?:名)?|学生(?:名)?|生徒(?:名)?|児童名|著者|作成者|差出人|送り主|契約者(?:名)?|代表者(?:名)?|連絡先氏名|緊急連絡先|宿泊者(?:名)?|予約者(?:名)?|申込者(?:名)?|保護者(?:名)?|口座名義(?:人)?|名義人|被保険者|医師|教師|担任|社員(?:名)?|従業員(?:名)?|原告|被告)",
        r"(?:[一-鿿々]{1,4}[ \u3000]?[一-鿿々ぁ-ゖァ-ヺー]{1,5}|[ァ-ヺー]{2,8}[ \u3000・][ァ-ヺー]{2,8}|[ぁ-ゖ]{2,6}[ \u3000][ぁ-ゖ]{2,6})(?=様|さん|殿|先生|氏|[\s\"'|,;(<、，。（\\]|$)",
    ),
    (
        r"(?:성명|이름|성함|담당자|담당|고객(?:명|님)?|환자(?:명)?|수령인|받는 ?(?:사람|분)|보내는 ?(?:사람|분)|수신인?|수취인|발신인?|학생(?:명)?|저자|작성자|연락 ?담당자|예금주|계약자|대표자|대표이사|신청인|신청자|원고|피고|직원|사원명|손님|투숙객|승객|탑승자|보호자|담당 ?의사?|의사|임차인|임대인|구매자|판매자|주문자|예약자|피보험자|수험생|교사|담임|증인|변호사|배우자|상속인)",
        r"[가-힣]{2,5}(?: [가-힣]{1,4})?(?=님|씨|[\s\"'|,;(<\\]|$)",
    ),
)
_COMPILED = tuple(
    LazyPattern(rf"{label}{_SEPARATOR}(?P<v>{name}){_END if number < 7 else ''}")
    for number, (label, name) in enumerate(_SCRIPTS)
)
# Names that a role, or a title behind them, tells without a separator, by the number of their script.
_BESIDE = tuple(
    (script, LazyPattern(pattern))
    for script, pattern in (
        (0, rf"{_SCRIPTS[0][0]} (?P<v>{_first_and_last_of(*_CYRILLIC)})"),
        (1, rf"{_SCRIPTS[1][0]} (?P<v>{_first_and_last_of(*_GREEK)})"),
        (6, rf"(?:{_SCRIPTS[6][0]})?(?P<v>{_SCRIPTS[6][1].replace('{1,3}', '{1,2}')})(?=先生|女士|小姐)"),
        (
            7,
            r"(?<![一-鿿々])(?P<v>[一-鿿々]{1,4}[ \u3000][一-鿿々ぁ-ゖァ-ヺー]{1,5}?)(?=さん|様|氏(?!名)|殿)",
        ),
        (8, rf"{_SCRIPTS[8][0]}(?:인|은|는)? (?P<v>[가-힣]{{3}})(?= ?(?:님|씨))"),
    )
)
_ALPHABETS = tuple(
    LazyPattern(each)
    for each in ("[А-я]", "[Α-ω]", "[א-ת]", "[ء-ۓ]", "[ऀ-\u0bff]", "[ก-๎]", "[一-鿿]", "[一-鿿]", "[가-힣]")
)
_NO_NAME = LazyPattern(
    r"(?i)не(?:т|має|известн\w*|указан\w*)|нет данных|пользовател\w*|користувач\w*|администратор\w*|адміністратор\w*|тест\w*|имя|фамилия|없음|미정|사용자|관리자|홍길동|테스트|未知|匿名|无|無|管理员|管理者|未設定|なし|不明|必須|任意|必填|可选|לא ידוע"
)


_SEARCHED = (
    *zip(_ALPHABETS, _COMPILED, strict=True),
    *((_ALPHABETS[script], pattern) for script, pattern in _BESIDE),
)
_LABELS = tuple(LazyPattern(label) for label, _ in _SCRIPTS)
_NAMES = tuple(LazyPattern(rf"(?:{name})") for _, name in _SCRIPTS)


def is_name_column(label: str) -> bool:
    """Tell whether the label of a column is a word for names or persons in one of these scripts."""
    return not label.isascii() and any(each.fullmatch(label) for each in _LABELS)


def is_name_cell(label: str, value: str) -> bool:
    """Tell whether a cell below such a label holds a name in the same script."""
    return not _NO_NAME.match(value) and any(
        each.fullmatch(label) and name.fullmatch(value) for each, name in zip(_LABELS, _NAMES, strict=True)
    )


def find_names_in_other_scripts(view: TextView) -> Iterator[Span]:
    """Find names behind a label, or beside a role or a title, in their own script."""
    text = view.text
    for alphabet, pattern in _SEARCHED:
        if alphabet.search(text):
            for match in pattern.finditer(text):
                if not _NO_NAME.match(match["v"]):
                    yield Span(*match.span("v"), "PERSON")


BEHIND_LABELS = make_probed_detector(find_names_in_other_scripts, r"\?\?[\"*]*[ \t]*[:=|?][ \t\"|]*\?\?")
"""The detector of these names, which also reads JSON as a whole."""
DETECTORS: tuple[Detector, ...] = (BEHIND_LABELS,)
