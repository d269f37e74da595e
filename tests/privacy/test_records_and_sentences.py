# ruff: noqa: RUF001 (texts in many scripts)
"""Values that a record, a sentence or another cell tells: logins, keys in other languages, persons."""

import pytest

from tracemill.privacy.redaction.redactor import Redactor

REDACTOR = Redactor(key=b"k")
SECRETS = [
    ("got {{Addr:10.0.0.3 User:mq Pass:{} Retries:3}}", "Huehnerstall1"),
    ("haproxy_stats: {{user: stats, pass: {}}}", "XQBvNkaz"),
    ("Using credentials [Username: uploader, Password: {}] for repo 'intern'", "Sandkasten3"),
    ("attempt user=mkrause pw={} ip=10.3.1.44", "Igelstachel3"),
    ("Enter database user [app]: app\nEnter database password: {}\nAdmin: kim", "Kaktusbluete"),
    ('sql_password: "{}"', "Saltlakrids"),
    ("production:\n  username: heron\n  password: {}\n  host: 192.168.40.2", "mistletoe"),
    ("svn co --username buildbot --password {} http://svn.alt.lan/trunk .", "Dampfwalze"),
    ('mysqli_connect("db2.hoster.ch", "archiv", "{}");', "Murmelbahn"),
    ('"Cache": "redis-lager:6379,password={},ssl=False"', "SFvvuwXebt"),
    ("curl -u admin:{} http://10.1.1.4:8080/status", "cinnamonroll"),
    ("ssh into the box with pi / {} and check the service", "raspberryjam"),
    ("creds for the box: kim / {}, port 2222", "himbeerkuchen"),
    ("A temporary password is generated for root@localhost: {}", "ks;Ww8xQ/hTz"),
    ("la contraseña del usuario root es {} y el puerto 3307", "mariposa"),
    ("Das Passwort für die Datenbank lautet {}, Benutzer ist test.", "Apfelstrudel"),
    ("la chiave segreta per i webhook è {}. puoi aggiornare", "gjH5cz7aKsT2iJ"),
    ("если что, вот секрет вебхука: {}", "qD5R2r4A1mkc"),
    ("APIキーは {} なので、.envに設定して", "be26da190142"),
    ("APIトークン「{}」を使って", "vCKEzRhV34G46DcrmSJqcnGoVIgInvbjfv6V"),
    ("chiave_firma = {}", "xR9vLq3TzW0m"),
    ("klucz={}", "c63671e70576f1"),
    ('static let weatherKey = "{}"', "8c01a9014e595d50"),
    ('client.set_totp_seed("{}")', "KVKFKRCPNZQUYMLXOVYDSQKJ"),
    ("RABBITMQ_ERLANG_COOKIE: {}", "0KNLFGJXVF52TJ6W7833"),
    ('if ($http_x_internal_key != "{}") {{ return 403; }}', "a6yYFhhlK4EugklR8HZgcb1cCeX7ReDg"),
    ("<ProductKey><Key>{}</Key></ProductKey>", "ZNI5H-58UM9-6WRGV-AOREF-LGXVL"),
    ("Wiederherstellungsschlüssel: `{}`", "816243-804209-698148-375641"),
    ("暗証番号は{}を入力して", "5565"),
    ("alert_pin          = {}", "77531"),
]
PERSONS = [
    ("Il codice fiscale di {} è BRMLVC85R67A794S", "Ludovica Brambati"),
    ("CPR-nummeret 170462-3184 ({}) bliver afvist", "Annelise Bruhn Kjeldgaard"),
    ("El NIE X1918094D de {} no pasa la validación", "Yolanda Arrizabalaga"),
    ("o cliente {} ligou a reclamar", "Amadeu Quaresma Leitão"),
    ("Mandant {}, wohnhaft in Graz", "Gerfried Hüttenbrenner"),
    ("Ο πελάτης {} δεν λαμβάνει τα email", "Λεωνίδας Χατζηκωνσταντίνου"),
    ("担当の{}さんから連絡があり", "堀之内 雅彦"),
    ("стр. 4\n\nС уважением,\n{}\n", "Глеб Вяземцев"),
    ('{{"surname":"{}","given":"LIESBET ANNA"}}', "VANDENBOSSCHE"),
    ('Authors@R: person("Anneliese", "{}", role = "aut")', "Trautvetter"),
    ("name: {{ given: 'Augustin', family: '{}' }}", "Merriweather"),
    ('Invoice(recipient="{}", city="Rouge")', "Hyacinth Delacroix-Boone"),
    (
        "Wagen   Fahrer              Tag\nX1      {}      Mo\nX2      Swantje Uhlenbrock  Di\n",
        "Eginhard Pfaff",
    ),
    ("الاسم,الهاتف\n{},0551830472\n", "سلوى البيطار"),
    ("이름,생년월일\n{},1991-05-18\n", "남궁은혜"),
    ('<label>Nombre y apellidos</label><input value="{}">', "Begoña Urrutia Salcedo"),
]
NUMBERS = [
    ('{{"steuer_id": "{}"}}', "47036892541"),
    ("她的手机号是 {},查一下", "15927730418"),
    ("電話は{}です", "090-2879-5131"),
    ("顧客({}生まれ)の住所", "1985年11月3日"),
    ("Friedhelm, {} (mobil)", "0171 3348902"),
    ("12 Personen wohnen: {}, Gatineau", "88 rue des Érables"),
    ("<br>{}<br>94032 Passau", "Schmiedgasse 31"),
    ("LOCATION:{}\n", "Birkenring 77"),
]
ORDINARY = [
    "    password: Incomplete\n    username: str",
    "def connect(user: str, password: SecretStr) -> None:",
    "connect(user=db_user, password=db_password)",
    'client.login(username="kim", password=settings.PASSWORD)',
    '{"confirmPassword": "Confirmer", "showPassword": "Anzeigen", "username": "Name"}',
    '{"password": "Passwort", "username": "Benutzername"}',
    "the password is incorrect, user kim is locked",
    "la contraseña es incorrecta para el usuario root",
    "roles: admin / editor / viewer",
    "Authenticates with AUTHINFO USER / AUTHINFO PASS",
    "# (JID user / app_id)",
    '"AWS::KMS::ReplicaKey": "903f43e74c8d8853",',
    "# Foundation, Inc., 51 Franklin Street, Fifth Floor, Boston, MA",
    "多様な仕様と同様の模様です",
    "the customer Success Team owns it",
]


@pytest.mark.parametrize(("text", "value"), [*SECRETS, *PERSONS, *NUMBERS])
def test_what_a_record_or_a_sentence_tells_is_redacted(text: str, value: str) -> None:
    shown, found = REDACTOR.redact_text(text.format(value))
    assert value not in shown
    assert found


@pytest.mark.parametrize("text", ORDINARY)
def test_types_labels_and_roles_stay(text: str) -> None:
    assert REDACTOR.redact_text(text)[0] == text
