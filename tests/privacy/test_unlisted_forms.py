"""Secrets and personal data that no list names are found by their place; code of the same look stays."""

import pytest

from tracemill.privacy.redaction.redactor import Redactor

DRAWN = "q7Xk2PvLz9RtB4mWc8Yd"
FOUND = (
    (f"connect via kilnworks_{DRAWN}{DRAWN[:8]} ok", DRAWN),
    (f"run('eu', 'kwx-st-{DRAWN}{DRAWN[::-1]}')", DRAWN),
    (f"kiln.{DRAWN}.{DRAWN[::-1]} refused", DRAWN),
    ("use acme_production_3f1c9a44-7b1e-4c55-9d0a-51f2a7c4e8b1 now", "3f1c9a44"),
    ("POST https://hooks.kiln.test/flow/8f2kq0zmx81vd73hs04bl5ty", "8f2kq0zmx81v"),
    ("curl https://bot.kiln.test/send?key=3f1c9a44-7b1e-4c55-9d0a-51f2a7c4e8b1", "3f1c9a44"),
    ("jwt.sign({ sub: user.id }, 'Walrus-t9679', { expiresIn: '1h' })", "Walrus-t9679"),
    ("token = JWT.encode payload, 'Walrus-t9679', 'HS256'", "Walrus-t9679"),
    ('DriverManager.getConnection("jdbc:h2:mem", "sa", "Walrus-t9679");', "Walrus-t9679"),
    ('s, err := token.SignedString([]byte("Walrus-t9679"))', "Walrus-t9679"),
    ('ks.load(in, "Walrus-t9679".toCharArray());', "Walrus-t9679"),
    ("SET PASSWORD FOR 'k'@'%' = PASSWORD('Walrus-t9679');", "Walrus-t9679"),
    ("vault kv put secret/kiln dsn=Walrus-t9679 ttl=1h", "Walrus-t9679"),
    ("kubectl create secret generic k --from-literal=dsn=Walrus-t9679", "Walrus-t9679"),
    ("aws ssm put-parameter --name /k --type SecureString --value 'Walrus-t9679'", "Walrus-t9679"),
    ("echo Walrus-t9679 | wrangler secret put SIGN", "Walrus-t9679"),
    ("binddn cn=reader,dc=kiln\nbindpw Walrus-t9679\n", "Walrus-t9679"),
    (': PSK "Walrus-t9679"\n', "Walrus-t9679"),
    ("-> AUTH LOGIN\n<- 334 UGFzc3dvcmQ6\n-> V2FscnVzLXQ5Njc5\n<- 235 ok", "V2FscnVz"),
    ('{"Jwt": {"Issuer": "kiln", "Key": "' + DRAWN + DRAWN + '"}}', DRAWN),
    ('{"name": "connect.sid", "value": "' + DRAWN + '"}', DRAWN),
    ("le mot de passe est Walrus_t9679 pour la base", "Walrus_t9679"),
    ("define( 'DB_PASSWORD', 'Walrus-t9679' );", "Walrus-t9679"),
    ("remoteuser = k\nremotepass = Walrus-t9679\n", "Walrus-t9679"),
    ("export DB_PASSWORD='qFPn9R'\"'\"'lC91YBmI'", "lC91YBmI"),
    (">  id | bsn | plan\n> ----+-----+------\n>   1 | 210984673 | pro", "210984673"),
    ("so:\n> [mill.example.net]:587 etl:mXUIzvvVwX9rwnm14yM3S", "mXUIzvvVwX9r"),
    ('{"type": "Point", "coordinates": [-8.090874, 36.032298]}', "36.032298"),
    ("dn: CN=Novotná\\, Esperanza,OU=people,DC=o\n", "Novotná"),
    ("Handy: 0171 2750943", "2750943"),
    ("Tél: 01 46 40 40 47", "46 40 40"),
    ("no,Steuer-ID,x\n1,86095742719,a\n", "86095742719"),
    ("née le 4 février 1961 à Nantes", "1961"),
    ("nacida el 19 de enero de 1960 en Vigo", "1960"),
    ("Adresse: Am Kirchberg 61\n", "Kirchberg"),
    ("Domicilio: Avda. de la Paz 8\n", "la Paz"),
    ("住所: 大阪府大阪市北区梅田5-18-9", "梅田"),
    ("please ship it to 360 Old Mill Lane, Springfield", "Old Mill"),
    ("j'habite au 42 rue des Tilleuls, 44000 Nantes", "Tilleuls"),
    ("my house is at -61.935631, -23.709212 roughly", "-61.935631"),
    ("https://www.google.com/maps/@60.048718,136.934877,17z", "60.048718"),
    ("meet at 21°49'10.6\"N 59°18'22.4\"E", "49'10"),
    ("[10:02] <oksana7> is it done?\n[10:03] <oksana7> ping\n", "oksana7"),
    ("[12/03/24, 10:02:11] Sanjay Vandenberg: hola\n", "Vandenberg"),
    ("Ansprechpartner: Luisa Castellano\n", "Castellano"),
    ("id: 7\nName: Luisa Bergstrom\ncity: Bari\n", "Bergstrom"),
    ("Cordialement,\nSanjay Iglesias\n", "Iglesias"),
    ("# Contributors\n\n- Rafael Petrenko\n- Ingrid Rousseau\n", "Rousseau"),
    ("  author = {Ingrid Mehrotra and Ludovic Quintana},", "Quintana"),
    ('{"login": "mk7", "name": "Ingrid Schreiber", "company": null}', "Schreiber"),
)
STAYS = (
    "toolu_01A7Xk2PvLz9RtB4mWc8YdQe and msg_01Q7Xk2PvLz9RtB4mWc8YdQe",
    "integrity sha512-q7Xk2PvLz9RtB4mWc8Ydq7Xk2PvLz9RtB4mWc8Ydq7Xk2PvLz9RtB4==",
    "test_every_string_of_json_stands_in_its_unescaped_text_2026",
    "jwt.sign(payload, config.secret, options)",
    "getConnection(url, user, password)",
    "basicAuth('user', 'password')",
    "heroku config:set NODE_ENV=production",
    "name: Deploy Docs\non: push\n",
    "Owner: Build Tools\n",
    "weights = [0.123456, 0.234567, 0.345678]",
    "center: 0.123456, 0.234567, 0.345678, 1.0",
    "address: 0x7fff5fbff8c0 line 42",
    "Contact: Support Team\n",
    "Best,\n\nThe Team\n",
    "see rue 12 and Street 5",
)


@pytest.mark.parametrize(("text", "private"), FOUND)
def test_values_are_found_by_their_place(text: str, private: str) -> None:
    redacted, found = Redactor().redact_text(text)
    assert private not in redacted
    assert sum(found.values()) >= 1


@pytest.mark.parametrize("text", STAYS)
def test_code_and_ids_of_the_same_look_stay(text: str) -> None:
    assert Redactor().redact_text(text)[0] == text
