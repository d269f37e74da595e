# ruff: noqa: E501 (tables)
"""Forms of personal numbers, dates and places under their labels, with check digits.

A label stands before its value (`personal.national_ids`) or over a column (`core.table_columns`).
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from importlib import import_module
from typing import NamedTuple

from tracemill.privacy.core.lazy_pattern import LazyPattern
from tracemill.privacy.core.rule import build_words_pattern, fold

_MIN_DIGITS = 5
_MIN_PHONE = 10  # digits of a telephone number without separators


class NumberForm(NamedTuple):
    """The type and form of a number and the module of python-stdnum that checks it; "" where none does."""

    kind: str
    form: LazyPattern[str]
    check: str


# Labels separated by `|`, the form, the module that checks it.
_NATIONAL_IDS = r"""
cpf = \d{3}\.?\d{3}\.?\d{3}-?\d{2} = br.cpf
pesel = \d{11} = pl.pesel
nino|national insurance|national_insurance|nationalinsurance|ni no|ni number|ni_number|ni num|ni nr = (?-i:[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d\d ?\d\d ?\d\d ?[A-D]) = -
dni|nif|identidad = \d{2}\.?\d{3}\.?\d{3}-?[A-Z] = es.dni
dni|nie|nif|identidad = [XYZ]-?\d{7}-?[A-Z] = es.nie
pan|permanent account number|permanent account|pan card = (?-i:[A-Z]{3}[ABCFGHJLPTK][A-Z]\d{4}[A-Z]) = -
aadhaar|aadhar|uidai = [2-9]\d{3}[ -]?\d{4}[ -]?\d{4} = in_.aadhaar
codice fiscale|codice_fiscale|codicefiscale = [A-Z]{6}\d\d[A-EHLMPRST]\d\d[A-Z]\d{3}[A-Z] = -
resident id|resident_id|id card|id_card|idcard = \d{6}(?:19|20)\d{9}[\dXx] = iso7064.mod_11_2
dni = \d{8} =
hkid|hk id|hong kong id|hong kong identity = [A-Z]{1,2}\d{6} ?(?:\([\dA]\)|[\dA]) = -
emirates id|emirates_id|emiratesid = 784-?\d{4}-?\d{7}-?\d = -
iin = \d{12} =
nin = \d{11} =
thai id|thai_id = \d-?\d{4}-?\d{5}-?\d{2}-?\d = th.pin
rnokpp = \d{10} =
steuer-id|steuerid|steuer id|steueridentifikationsnummer|steuer-identifikationsnummer|steuerliche identifikationsnummer|idnr|taxid|tax id|tax_id|tin = \d{2} ?\d{3} ?\d{3} ?\d{3} = de.idnr
steuernummer|steuer-nr|steuer-nummer|stnr = \d{2,3}/\d{3,4}/\d{4,5} =
ahv|avs|ahv-nr|ahvn13|oasi|sozialversicherungsnummer|sv-nummer|no avs|numero avs = 756\.?\d{4}\.?\d{4}\.?\d{2} = ch.ssn
bsn|burgerservicenummer|sofinummer|sofi-nummer = \d{9}|\d{3}[. ]\d{3}[. ]\d{3}|\d{4}[. ]\d{2}[. ]\d{3} = nl.bsn
nir|insee|nss|secu|s\xe9cu|securite sociale|s\xe9curit\xe9 sociale|securite_sociale|carte vitale = [1-478] ?\d{2} ?\d{2} ?\d[\dAB] ?\d{3} ?\d{3} ?\d{2} = fr.nir
spi|numero fiscal|num\xe9ro fiscal = [0-3]\d ?\d{2} ?\d{3} ?\d{3} ?\d{3} = fr.nif
sin|social insurance|social_insurance|socialinsurance|assurance sociale|nas = \d{3}[ -]?\d{3}[ -]?\d{3} = ca.sin
tfn|tax file|tax_file|taxfile = \d{3} ?\d{3} ?\d{2,3} = au.tfn
medicare = [2-6]\d{3} ?\d{5} ?\d{1,2} =
nhs = \d{3}[ -]?\d{3}[ -]?\d{4} = gb.nhs
utr|unique taxpayer = \d{5} ?\d{5} = gb.utr
tckn|tc kimlik|t.c. kimlik|tc_kimlik|tckimlik|tc no|kimlik|kimlik no = [1-9]\d{10} = tr.tckimlik
rut|rol unico tributario|rol \xfanico tributario|cedula de identidad|c\xe9dula de identidad = \d{1,2}\.?\d{3}\.?\d{3}-?[\dKk] = cl.rut
curp = [A-Za-z]{4}\d{6}[HMhm][A-Za-z]{5}[A-Za-z0-9]\d = mx.curp
rfc = (?-i:[A-Z\xd1&]{4}\d{6}[A-Z0-9]{3}) = mx.rfc
rrn|jumin|resident registration|resident_registration|residentregistration = \d{6}-?[1-8]\d{6} =
my number|mynumber|my_number|individual number = \d{4}[ -]?\d{4}[ -]?\d{4} = jp.in_
personnummer|personnr|pnr|samordningsnummer = (?:19|20)?\d{6}[-+]?\d{4} = se.personnummer
hetu|henkilotunnus|henkil\xf6tunnus|sotu|hlotunnus = \d{6}[-+A-FU-Ya-fu-y]\d{3}[0-9A-Ya-y] = fi.hetu
fodselsnummer|f\xf8dselsnummer|foedselsnummer|fodselsnr|f\xf8dselsnr|fnr|personnummer|d-nummer = \d{6} ?\d{5} = no.fodselsnummer
cpr|cpr-nr|cpr nr|cprnr|personnummer = [0-3]\d[01]\d{3}-?\d{4} = dk.cpr
kennitala = \d{6}-?\d{4} = is_.kennitala
cnp|cod numeric personal = [1-9]\d{12} = ro.cnp
egn = \d{10} = bg.egn
svnr|sv-nr|svnummer|sv-nummer|sozialversicherungsnummer|sozialversicherungsnr|versicherungsnummer = \d{4} ?\d{6} = at.vnr
rentenversicherungsnummer|rvnr|sozialversicherungsnummer|sv-nummer|versicherungsnummer = \d{2} ?\d{6} ?[A-Z] ?\d{3} =
rodne cislo|rodn\xe9 c\xedslo|rodn\xe9 |rodne_cislo|rodnecislo = \d{6}/?\d{3,4} = cz.rc
rijksregisternummer|registre national|rijksregister|insz|niss|numero national|num\xe9ro national = \d{2}\.?\d{2}\.?\d{2}-?\d{3}\.?\d{2} = be.nn
nif|contribuinte = [1-3]\d{2} ?\d{3} ?\d{3} = pt.nif
oib = \d{11} = hr.oib
isikukood = [1-8]\d{10} = ee.ik
asmens kodas|asmens_kodas = [1-8]\d{10} = lt.asmens
personas kods|personas_kods = \d{6}-?\d{5} =
emso|em\u0161o|jmbg|maticni broj = \d{13} = si.emso
amka = \d{11} = gr.amka
pps|ppsn = \d{7}[A-Wa-w][A-IWa-iw]? = ie.pps
ird = \d{2,3}[- ]?\d{3}[- ]?\d{3} = nz.ird
nric|fin = (?-i:[STFGM]\d{7}[A-Z]) =
mykad|nric = \d{6}-?\d{2}-?\d{4} =
teudat zehut|teudat_zehut|zehut = \d{8,9} = il.idnr
sa id|rsa id|id number|id_number|idnumber|identity number|identity_number = \d{13} = za.idnr
id number|id_number|idnumber|resident id|shenfenzheng|identity card|identity_card = \d{17}[\dXx] = iso7064.mod_11_2
cuit|cuil = \d{2}-?\d{8}-?\d = ar.cuit
cedula|c\xe9dula|cedula de ciudadania|c\xe9dula de ciudadan\xeda|nuip = \d{3}\.?\d{3}\.?\d{4}|\d{1,2}\.\d{3}\.\d{3} =
itin = 9\d{2}-?\d{2}-?\d{4} = us.itin
inn = \d{12} = ru.inn
snils = \d{3}-?\d{3}-?\d{3}[ -]?\d{2} =
nik = \d{16} =
cnic = \d{5}-?\d{7}-?\d = pk.cnic
national id|national_id|nationalid|national identity|national identification|nationalidentity|personal id|personal_id|personal identification|identity number|identity_number|taxid|tax id|tax_id|tax number|tax_number|taxnumber|taxpayer id|taxpayer_id|taxpayerid|government id|government_id|governmentid|identity card|identity_card = [A-Z]{0,4}-?\d[\dA-Z./ -]{4,18}[\dA-Z] =
licence_number|license_number|driver's license|driver's licence|driver\u2019s license|driver\u2019s licence|drivers license|drivers licence|driver license|driver licence|driving license|driving licence|drivers_license|driver_license|driver_licence|driving_licence|driving_license|driverslicense|driverlicense|driverlicence|drivinglicence|drivinglicense|licence de conduire|permis de conduire|carnet de conducir|licencia de conducir|patente di guida|f\xfchrerschein|fuhrerschein|fuehrerschein|f\xfchrerscheinnummer|rijbewijs|prawo jazdy|k\xf6rkort|korkort|carteira de habilita\xe7\xe3o|cnh = (?-i:[A-Z]{0,5}[- ]?\d[\dA-Z -]{4,18}[\dA-Z]) =
taj sz\xe1m|taj-sz\xe1m|taj szam = \d{3}[ -]?\d{3}[ -]?\d{3} =
ad\xf3azonos\xedt\xf3|ad\xf3azonos\xedt\xf3 jel|adoazonosito = 8\d{9} =
szem\xe9lyi sz\xe1m|szem\xe9lyi azonos\xedt\xf3|szem\xe9lyi igazolv\xe1ny = \d[- ]?\d{6}[- ]?\d{4}|\d{6} ?[A-Z]{2} =
dow\xf3d osobisty|numer dowodu|nr dowodu|seria i numer dowodu = [A-Z]{3} ?\d{6} =
carte d'identit\xe9|carte nationale d'identit\xe9|cni = \d{12}|(?-i:[A-Z0-9]{2}\d[A-Z0-9]{6}) =
carta d'identit\xe0|carta di identit\xe0|carta identit\xe0 = [A-Z]{2} ?\d{5} ?[A-Z]{2}|[A-Z]{2} ?\d{7} =
tessera sanitaria = 80\d{18} =
seguridad social|seguro social|n\xfamero de seguridad social|nuss|naf|nss|imss = \d{2}[ /-]?\d{8}[ /-]?\d{2}|\d{11} =
cart\xe3o de cidad\xe3o|cartao de cidadao|bilhete de identidade = \d{8} ?\d ?[A-Z]{2}\d|\d{8} ?\d? =
niss|seguran\xe7a social = \d{11} =
utente|n\xfamero de utente|sns = \d{9} =
rg|registro geral|carteira de identidade = \d{1,2}\.\d{3}\.\d{3}-?[\dXx] =
pis|pasep|pis/pasep|nis = \d{3}\.?\d{5}\.?\d{2}-?\d =
t\xedtulo de eleitor|titulo de eleitor = \d{4} ?\d{4} ?\d{4} =
cc|c.c.|c\xe9dula|cedula|ci|c.i. = (?-i:[VEJ]-?\d{1,2}\.?\d{3}\.?\d{3})|\d{1,3}(?:\.\d{3}){2,3}(?:-\d)? =
sss number|sss no|sss = \d{2}-\d{7}-\d =
philhealth|umid|philsys|crn = \d{2}-?\d{9}-?\d|\d{4}-\d{7}-\d|\d{4}-\d{4}-\d{4}-\d{4} =
ktp|no ktp|nomor ktp|nomor induk kependudukan = \d{16} =
npwp = \d{2}\.\d{3}\.\d{3}\.\d-\d{3}\.\d{3} =
kad pengenalan|no kp = \d{6}-?\d{2}-?\d{4} =
bvn = \d{11} =
ghana card = GHA-?\d{9}-?\d =
mbi|medicare|medicare beneficiary = \d[A-Z][A-Z0-9]\d-?[A-Z][A-Z0-9]\d-?[A-Z]{2}\d{2} =
ohip|health card|health_card|healthcard = \d{4}[- ]?\d{3}[- ]?\d{3}(?:[- ]?[A-Z]{2})? =
nhi = (?-i:[A-Z]{3}\d{4}|[A-Z]{3}\d{2}[A-Z]{2}) =
chi number|chi no = \d{10} =
personalausweis|personalausweisnummer|ausweisnummer|ausweisnr|ausweis-nr = (?-i:(?=[A-Z]*\d)[A-Z0-9]{9,10}) =
matricule nationale|matricule = \d{13}|\d{11} =
nic|national identity card = \d{9}[VvXx]|\d{12} =
nip = \d{3}-\d{3}-\d{2}-\d{2}|\d{3}-\d{2}-\d{2}-\d{3} =
social security number|social insurance number|national insurance number|identification number|identity number|identity document|document of identity|personal code|personal number|citizen id|citizen number|citizenship number|civil id|civil number|civil registration number|tax identification number|tax identifier|tax file number|resident number|residence permit|residence card|residence permit number|aufenthaltstitel|aufenthaltstitelnummer|num\xe9ro de s\xe9curit\xe9 sociale|num\xe9ro fiscal|num\xe9ro d'identit\xe9|identifiant fiscal|titre de s\xe9jour|n\xfamero de identidad|n\xfamero de identificaci\xf3n|documento de identidad|documento nacional de identidad|documento d'identit\xe0|numero di identit\xe0|n\xfamero de identifica\xe7\xe3o|documento de identidade|identiteitsnummer|identiteitskaart|identifikationsnummer|identitetsnummer|henkil\xf6kortti|skattenummer|voter id|voter_id|voterid|epic number|ration card = [A-Z]{0,4}-?\d[\dA-Z./ -]{4,18}[\dA-Z] =
"""
_SOCIAL_SECURITY = r"""
ssn|social security|social_security = (?!000|666|9)\d{3}[- ]?(?!00)\d\d[- ]?(?!0000)\d{4} = -
"""
_PASSPORTS = r"""
passport|reisepass|ausweis|passeport|pasaporte|passaporte|paszport = (?-i:[A-Z]{0,2}\d[A-Z0-9]{5,8}|[A-Z][A-Z0-9]{6,8}) = passport
"""
_MONTH = r"(?:jan|feb|f\xe9v|mar|m\xe4r|apr|avr|abr|may|mai|maj|mag|giu|jun|jui|jul|lug|aug|ago|ao\xfb|aou|sep|set|oct|okt|ott|out|ene|gen|nov|dec|d\xe9c|dez|dic)[a-z\xe7\xe9\xfb]{0,7}\.?"
DATE = rf"(?:(?:19|20)\d\d[-/.](?:0?[1-9]|1[0-2])[-/.](?:[12]\d|3[01]|0?[1-9])|[0-3]?\d[-/.][0-3]?\d[-/.](?:19|20)\d\d|[0-3]?\d(?:\.|er|st|nd|rd|th|\xba)? (?:de |of )?{_MONTH},? (?:de |of )?(?:19|20)\d\d|{_MONTH} [0-3]?\d(?:st|nd|rd|th)?,? (?:19|20)\d\d|(?:19|20)\d\d(?:\u5e74|\ub144) ?\d{{1,2}}(?:\u6708|\uc6d4) ?\d{{1,2}}(?:\u65e5|\uc77c))"
"""The pattern of a date with its year, in numbers or words."""
_BIRTH_DATES = rf"""
date of birth|date_of_birth|date-of-birth|dateofbirth|birthdate|birth_date|birth date|birthday|bday|dob|d.o.b|born|geburtsdatum|gebdat|geb-dat|geburtstag|geboren|geboortedatum|naissance|nacimiento|nascimento|nascita|data urodzenia|data_urodzenia|f\xf6delsedatum|fodelsedatum|f\xf8dselsdato|fodselsdato|syntym\xe4aika|syntymaaika|n\xe9 le|n\xe9e le|n\xe9(e) le|ne le|nee le|nacido|nacida|nato il|nata il|nascido|nascida|f\xf6dd|f\xf8dt|urodzona|urodzony|syntynyt|geb.|datum narozen\xed|datum_narozeni|datum rodenja = {DATE}|(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]) = -
"""
_PLACES = r"""
latitude|longitude|lat|lng|lon|long = -?\d{1,3}\.\d{4,12} = -
"""
_PATIENTS = r"""
versichertennummer|versicherten-nr|krankenversichertennummer|kvnr|insurance number|insurance no|insurance_number|insurance id|insurance_id|member id|member_id|member number|member_number|membership number|policy number|policy no|policy_number|policennummer|versicherungsnr|n\xfam. afiliaci\xf3n|num\xe9ro d'adh\xe9rent = (?-i:[A-Z]{0,4}[- ]?\d[\dA-Z-]{5,14}) =
matrikelnummer|matrikel-nr|matriculation number|student number|student no|student_number = \d{6,10} =
patienten-nr|patientennummer|patientennr|patienten-id|patienten id|patientnummer|pati\xebntnummer|patientnr|num\xe9ro de patient|no patient|num\xe9ro de dossier|dossier m\xe9dical|historia cl\xednica|n\xfamero de historia|n\xfamero de paciente|cartella clinica|numero paziente|prontu\xe1rio|journalnummer|fallnummer|hospital number|hospital no|chart number|chart no|health record|case file|krankenakte|patient = (?-i:[A-Z]{0,4}[- ]?\d{5,12}(?:/\d{2,4})?) =
student id|student_id|studentid|student card|student_no|studentennummer|studentnummer|opiskelijanumero|num\xe9ro d'\xe9tudiant|num\xe9ro \xe9tudiant|carte \xe9tudiant|n\xfamero de estudiante|n\xfamero de alumno|n\xfamero de aluno|matr\xedcula|matricola|numero di matricola|numer albumu|pupil id|school id|admission number|roll number|roll no|hallgat\xf3i azonos\xedt\xf3|neptun = (?-i:[A-Z]{0,4}[-/ ]?\d{5,12}(?:/\d{2,4})?) =
employee id|employee_id|employeeid|employee number|employee no|staff id|staff number|personnel number|personalnummer|personal-nr|mitarbeiternummer|mitarbeiter-nr|num\xe9ro de salari\xe9|n\xfamero de empleado|personeelsnummer|anst\xe4llningsnummer|badge number = (?-i:[A-Z]{0,4}[- ]?\d{5,10}) =
visa number|visa no|visa nr|visumnummer|num\xe9ro de visa|n\xfamero de visado|permit number|permit no|residence permit|work permit|green card|uscis|alien number|alien registration number|a-number = (?-i:[A-Z]{0,3}-?\d[\dA-Z-]{5,14}|[A-Z]\d[A-Z0-9]{7}) =
memberid|membership id|membership no|membership|mitgliedsnummer|mitglieds-nr|num\xe9ro de membre|num\xe9ro d'adh\xe9rent|n\xfamero de socio|lidnummer|medlemsnummer|loyalty number|loyalty card|frequent flyer|frequent flyer number|frequent-flyer|vielfliegernummer|miles & more|bonuskarte|kundennummer|kunden-nr|kundennr|customer number|customer no|client number|client no|num\xe9ro de client|num\xe9ro client|n\xfamero de cliente|numero cliente|klantnummer|kundenummer|kundnummer|nr klienta = (?-i:[A-Z]{0,4}[- ]?\d[\dA-Z-]{4,14}) =
num\xe9ro de contrat|n\xb0 de contrat|vertragsnummer|versicherungsschein|versicherungsscheinnummer|policen-nr|n\xfamero de p\xf3liza|p\xf3liza|numero polizza|polizza|ap\xf3lice|polisnummer|numer polisy|claim number|claim no|schadennummer|schaden-nr|num\xe9ro de sinistre|contract number|contract no = (?-i:[A-Z]{0,4}[-/ ]?\d[\dA-Z/-]{5,14}) =
ticket number|ticket no|e-ticket|eticket|ticketnummer|num\xe9ro de billet|booking reference|booking ref|booking code|booking number|buchungsnummer|buchungscode|reservation number|reservierungsnummer|confirmation number|num\xe9ro de r\xe9servation|localizador|record locator|pnr|trip number = (?-i:\d{3}[- ]?\d{10}|(?=[A-Z]*\d)[A-Z0-9]{6}|\d{8,13}) =
medical license|medical licence|npi|npi number|gmc number|gmc no|dea number|bar number|lanr|arztnummer|rpps|adeli|betriebsnummer|bsnr = (?-i:[A-Z]{0,2}\d{6,11}) =
voter id|voter number|voter registration number|ration card|ration card number|uan|epf number|pf number|esic number|pran = (?-i:[A-Z]{0,5}[/ ]?\d[\dA-Z/]{5,20}) =
mrn|medical record|medical_record|patient id|patient_id|patientid|patient number|patient no = [A-Z]{0,3}-?\d{6,10} =
"""
_ACCOUNTS = r"""
account number|account_number|accountnumber|account no|acct no|acct_no|bank account|bank_account|kontonummer|kontonr|numero de cuenta|n\xfamero de cuenta|num\xe9ro de compte = \d{4}[ -]?\d{4}[ -]?\d{0,9} =
"""
_CARDS = r"""
cvv|cvc|cvv2|cvc2|cid code|card verification|card security code|security code|pr\xfcfziffer|kartenpr\xfcfnummer|cryptogramme = \d{3,4} = -
card number|card_number|cardnumber|card no|cardno|cc number|cc_number|ccnumber|credit card|credit_card|creditcard|debit card|kreditkarte|kartennummer|tarjeta|carte bancaire|pan = \d(?:[ -]?\d){12,18} = luhn
"""
_PHONES = r"""
phone|mobile|telephone|telefon|telefono|tel\xe9fono|t\xe9l\xe9phone|telefone|celular|movil|m\xf3vil|whatsapp|msisdn|handy|handynummer|mobil|mobilnummer|mobiel|rufnummer|t\xe9l|portable|cellulare|telem\xf3vel|telemovel|telefoon|tel. kom.|puhelin|matkapuhelin|mobilais|durchwahl|contact number|contact_number|call me on|call me at|reach me on|reach me at|text me at|text me on|ring me on|erreichbar unter|joignable au|ruf mich unter|unter der nummer|unter der rufnummer|mein handy|mi n\xfamero|mon num\xe9ro|my number = \+?\(?\d[\d() /.-]{6,22}\d = phone
"""
_DEVICES = r"""
imei = \d{2}-?\d{6}-?\d{6}-?\d = luhn
iccid|sim number|sim card number|sim-kartennummer = 89\d{16,18} =
imsi = \d{14,15} =
udid|device udid = [0-9a-f]{40}|[0-9A-F]{8}-[0-9A-F]{16} = -
androidid|android id|android_id|gsf id = [0-9a-f]{16} = -
advertising id|advertising_id|advertisingid|idfa|idfv|gaid|adid = [0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12} = -
serial number|serialnumber|seriennummer|num\xe9ro de s\xe9rie|n\xfamero de serie = (?-i:C02[A-Z0-9]{8,9}|[A-Z](?=[A-Z]*\d[A-Z]*\d)[A-Z0-9]{11}) = -
"""
_VEHICLES = r"""
vin|chassis number|chassis_number|fahrgestellnummer = (?-i:(?=[A-Z]*\d)[A-HJ-NPR-Z0-9]{17}) = -
license plate|license_plate|licenseplate|licence plate|licence_plate|number plate|kennzeichen|targa|immatriculation = (?-i:(?=[A-Z-]*\d)[A-Z\d]{1,3}-[A-Z\d]{2,3}-[A-Z\d]{1,2}(?![A-Z\d-])|[A-Z]{1,3}[- ]?[A-Z]{1,3}[- ]?\d{1,4}|[A-Z]{2}[- ]?\d{2,3}[- ]?[A-Z]{2,3}|\d{1,4}[- ]?[A-Z]{2,3}) = -
"""
# The same in scripts outside Latin-1.
_SCRIPTS = r"""
\u8eab\u4efd\u8bc1\u53f7\u7801|\u8eab\u4efd\u8bc1\u53f7|\u8eab\u4efd\u8bc1|\u8eab\u5206\u8b49|\u516c\u6c11\u8eab\u4efd\u53f7\u7801 = \d{17}[\dXx] = iso7064.mod_11_2
\uc8fc\ubbfc\ub4f1\ub85d\ubc88\ud638|\uc8fc\ubbfc\ubc88\ud638 = \d{6}-?[1-8]\d{6} =
\u30de\u30a4\u30ca\u30f3\u30d0\u30fc|\u500b\u4eba\u756a\u53f7 = \d{4}[ -]?\d{4}[ -]?\d{4} = jp.in_
\u0435\u0433\u043d|\u0415\u0413\u041d = \d{10} = bg.egn
\u0438\u043d\u043d|\u0418\u041d\u041d = \d{12} = ru.inn
\u0441\u043d\u0438\u043b\u0441|\u0421\u041d\u0418\u041b\u0421 = \d{3}-?\d{3}-?\d{3}[ -]?\d{2} =
\u05ea\u05e2\u05d5\u05d3\u05ea \u05d6\u05d4\u05d5\u05ea = \d{8,9} = il.idnr
\u03b1\u03bc\u03ba\u03b1|\u0391\u039c\u039a\u0391 = \d{11} = gr.amka
\u0440\u043d\u043e\u043a\u043f\u043f|\u0420\u041d\u041e\u041a\u041f\u041f|\u0406\u041f\u041d = \d{10} =
\u0418\u0418\u041d = \d{12} =
\u0e40\u0e25\u0e02\u0e1b\u0e23\u0e30\u0e08\u0e33\u0e15\u0e31\u0e27\u0e1b\u0e23\u0e30\u0e0a\u0e32\u0e0a\u0e19 = \d-?\d{4}-?\d{5}-?\d{2}-?\d = th.pin
\u0627\u0644\u0631\u0642\u0645 \u0627\u0644\u0642\u0648\u0645\u064a|\u0631\u0642\u0645 \u0627\u0644\u0647\u0648\u064a\u0629 = \d{10}|\d{14} =
\u8eab\u5206\u8b49\u5b57\u865f|\u8eab\u5206\u8b49 = [A-Z][12]\d{8} =
\u8eab\u4efd\u8b49\u865f\u78bc|\u8eab\u4efd\u8b49|\u8eab\u5206\u8b49\u865f\u78bc = [A-Z]{1,2}\d{6} ?\([\dA]\)|[A-Z][12]\d{8}|\d{17}[\dXx] =
\u05ea.\u05d6.|\u05ea"\u05d6|\u05ea\u05d6|\u05de\u05e1\u05e4\u05e8 \u05d6\u05d4\u05d5\u05ea|\u05de\u05e1\u05e4\u05e8 \u05ea\u05e2\u05d5\u05d3\u05ea \u05d6\u05d4\u05d5\u05ea = \d{8,9} =
\u0391\u03a6\u039c|\u03b1\u03c6\u03bc|\u0391.\u03a6.\u039c.|\u0391\u0394\u03a4|\u0391.\u0394.\u03a4.|\u0391\u039c\u039a\u0391|\u0391.\u039c.\u039a.\u0391. = \d{11}|\d{9}|[A-Z\u0391-\u03a9]{1,2} ?-?\d{6} =
\u0408\u041c\u0411\u0413|\u0458\u043c\u0431\u0433|\u0415\u041c\u0411\u0413|\u041b\u041d\u0427|\u0404\u0414\u0414\u0420|\u0423\u041d\u0417\u0420|\u0443\u043d\u0437\u0440|\u0436\u0441\u043d|\u0416\u0421\u041d|\u043f\u043e\u043b\u0438\u0441|\u041e\u041c\u0421|\u043f\u043e\u043b\u0438\u0441 \u041e\u041c\u0421|\u043f\u0430\u0441\u043f\u043e\u0440\u0442\u043d\u044b\u0435 \u0434\u0430\u043d\u043d\u044b\u0435|\u0432\u043e\u0434\u0438\u0442\u0435\u043b\u044c\u0441\u043a\u043e\u0435 \u0443\u0434\u043e\u0441\u0442\u043e\u0432\u0435\u0440\u0435\u043d\u0438\u0435|\u043f\u043e\u0441\u0432\u0456\u0434\u0447\u0435\u043d\u043d\u044f|\u0456\u0434\u0435\u043d\u0442\u0438\u0444\u0456\u043a\u0430\u0446\u0456\u0439\u043d\u0438\u0439 \u043a\u043e\u0434|\u0406\u041f\u041d|\u0456\u043f\u043d|\u043b\u0438\u0447\u043d\u0430 \u043a\u0430\u0440\u0442\u0430|\u043b\u0438\u0447\u0435\u043d \u043d\u043e\u043c\u0435\u0440 = \d{13}|\d{8}-\d{5}|\d{16}|\d{10}|\d{12}|\d{2} ?\d{2} ?\d{6}|\d{9} =
\u0627\u0644\u0631\u0642\u0645 \u0627\u0644\u0648\u0637\u0646\u064a|\u0631\u0642\u0645 \u0627\u0644\u0625\u0642\u0627\u0645\u0629|\u0631\u0642\u0645 \u0627\u0644\u0647\u0648\u064a\u0629 \u0627\u0644\u0648\u0637\u0646\u064a\u0629|\u0631\u0642\u0645 \u0627\u0644\u0628\u0637\u0627\u0642\u0629|\u06a9\u062f \u0645\u0644\u06cc = \d{9,15} =
\u0906\u0927\u093e\u0930|\u0906\u0927\u093e\u0930 \u0938\u0902\u0916\u094d\u092f\u093e|\u0906\u0927\u093e\u0930 \u0928\u0902\u092c\u0930 = [2-9]\d{3}[ -]?\d{4}[ -]?\d{4} =
\u904b\u8ee2\u514d\u8a31\u8a3c|\u904b\u8ee2\u514d\u8a31\u8a3c\u756a\u53f7|\u514d\u8a31\u8a3c\u756a\u53f7|\u57fa\u790e\u5e74\u91d1\u756a\u53f7|\u5065\u5eb7\u4fdd\u967a\u8a3c|\u88ab\u4fdd\u967a\u8005\u756a\u53f7|\u5728\u7559\u30ab\u30fc\u30c9\u756a\u53f7|\u5728\u7559\u30ab\u30fc\u30c9|\u30d1\u30b9\u30dd\u30fc\u30c8\u756a\u53f7 = \d{12}|\d{4}-?\d{6}|\d{8}|[A-Z]{2}\d{8}[A-Z]{2}|[A-Z]{2}\d{7} =
\uc678\uad6d\uc778\ub4f1\ub85d\ubc88\ud638|\uc6b4\uc804\uba74\ud5c8\ubc88\ud638|\uc6b4\uc804\uba74\ud5c8 = \d{6}-?[1-8]\d{6}|\d{2}-\d{2}-\d{6}-\d{2} =
\u793e\u4fdd\u53f7|\u793e\u4f1a\u4fdd\u969c\u53f7\u7801|\u8bc1\u4ef6\u53f7\u7801|\u8bc1\u4ef6\u53f7|\u8b77\u7167\u865f\u78bc|\u62a4\u7167\u53f7\u7801|\u62a4\u7167\u53f7|\u901a\u884c\u8bc1\u53f7 = \d{17}[\dXx]|[A-Z]{1,2}\d{7,9} =
\u0e40\u0e25\u0e02\u0e1a\u0e31\u0e15\u0e23\u0e1b\u0e23\u0e30\u0e0a\u0e32\u0e0a\u0e19|\u0e40\u0e25\u0e02\u0e1b\u0e23\u0e30\u0e08\u0e33\u0e15\u0e31\u0e27\u0e1b\u0e23\u0e30\u0e0a\u0e32\u0e0a\u0e19|\u0e1a\u0e31\u0e15\u0e23\u0e1b\u0e23\u0e30\u0e0a\u0e32\u0e0a\u0e19 = \d-?\d{4}-?\d{5}-?\d{2}-?\d =
"""
_SCRIPT_PASSPORTS = r"""
\u043f\u0430\u0441\u043f\u043e\u0440\u0442|\u041f\u0430\u0441\u043f\u043e\u0440\u0442|\u62a4\u7167|\u65c5\u5238|\uc5ec\uad8c = (?-i:[A-Z]{0,2}\d{2} ?\d{2} ?\d{5,6}|[A-Z]{1,2}\d{7,8}) =
"""
_SCRIPT_BIRTH_DATES = rf"""
\u05ea\u05d0\u05e8\u05d9\u05da \u05dc\u05d9\u05d3\u05d4|\u062a\u0627\u0631\u064a\u062e \u0627\u0644\u0645\u064a\u0644\u0627\u062f|\u03b7\u03bc\u03b5\u03c1\u03bf\u03bc\u03b7\u03bd\u03af\u03b1 \u03b3\u03ad\u03bd\u03bd\u03b7\u03c3\u03b7\u03c2|\u0397\u03bc\u03b5\u03c1\u03bf\u03bc\u03b7\u03bd\u03af\u03b1 \u03b3\u03ad\u03bd\u03bd\u03b7\u03c3\u03b7\u03c2|\u091c\u0928\u094d\u092e \u0924\u093f\u0925\u093f|\u091c\u0928\u094d\u092e\u0924\u093f\u0925\u093f|\u0e27\u0e31\u0e19\u0e40\u0e01\u0e34\u0e14|\u0e27\u0e31\u0e19\u0e40\u0e14\u0e37\u0e2d\u0e19\u0e1b\u0e35\u0e40\u0e01\u0e34\u0e14|\u0434\u0430\u0442\u0430 \u043d\u0430 \u0440\u0430\u0436\u0434\u0430\u043d\u0435|\u0414\u0430\u0442\u0430 \u043d\u0430 \u0440\u0430\u0436\u0434\u0430\u043d\u0435|\u0434\u0430\u0442\u0443\u043c \u0440\u043e\u0452\u0435\u045a\u0430|\u0414\u0430\u0442\u0443\u043c \u0440\u043e\u0452\u0435\u045a\u0430|\u0440\u043e\u0434\u0438\u043b\u0441\u044f|\u0440\u043e\u0434\u0438\u043b\u0430\u0441\u044c|\u043d\u0430\u0440\u043e\u0434\u0438\u0432\u0441\u044f|\u043d\u0430\u0440\u043e\u0434\u0438\u043b\u0430\u0441\u044f|\u51fa\u751f|\uc0dd\uc77c|\u51fa\u751f\u5e74\u6708|\u062a\u0627\u0631\u06cc\u062e \u062a\u0648\u0644\u062f|\u751f\u5e74\u6708\u65e5|\u51fa\u751f\u65e5\u671f|\u51fa\u05ea\u05d0\u05e8\u05d9\u05da \u05dc\u05d9\u05d3\u05d4|\u062a\u0627\u0631\u064a\u062e \u0627\u0644\u0645\u064a\u0644\u0627\u062f|\u03b7\u03bc\u03b5\u03c1\u03bf\u03bc\u03b7\u03bd\u03af\u03b1 \u03b3\u03ad\u03bd\u03bd\u03b7\u03c3\u03b7\u03c2|\u0397\u03bc\u03b5\u03c1\u03bf\u03bc\u03b7\u03bd\u03af\u03b1 \u03b3\u03ad\u03bd\u03bd\u03b7\u03c3\u03b7\u03c2|\u091c\u0928\u094d\u092e \u0924\u093f\u0925\u093f|\u091c\u0928\u094d\u092e\u0924\u093f\u0925\u093f|\u0e27\u0e31\u0e19\u0e40\u0e01\u0e34\u0e14|\u0e27\u0e31\u0e19\u0e40\u0e14\u0e37\u0e2d\u0e19\u0e1b\u0e35\u0e40\u0e01\u0e34\u0e14|\u0434\u0430\u0442\u0430 \u043d\u0430 \u0440\u0430\u0436\u0434\u0430\u043d\u0435|\u0414\u0430\u0442\u0430 \u043d\u0430 \u0440\u0430\u0436\u0434\u0430\u043d\u0435|\u0434\u0430\u0442\u0443\u043c \u0440\u043e\u0452\u0435\u045a\u0430|\u0414\u0430\u0442\u0443\u043c \u0440\u043e\u0452\u0435\u045a\u0430|\u0440\u043e\u0434\u0438\u043b\u0441\u044f|\u0440\u043e\u0434\u0438\u043b\u0430\u0441\u044c|\u043d\u0430\u0440\u043e\u0434\u0438\u0432\u0441\u044f|\u043d\u0430\u0440\u043e\u0434\u0438\u043b\u0430\u0441\u044f|\u51fa\u751f|\uc0dd\uc77c|\u51fa\u751f\u5e74\u6708|\u062a\u0627\u0631\u06cc\u062e \u062a\u0648\u0644\u062f|\u751f\u5e74\u6708\u65e5|\u751f\u65e5|\uc0dd\ub144\uc6d4\uc77c|\u0434\u0430\u0442\u0430 \u0440\u043e\u0436\u0434\u0435\u043d\u0438\u044f|\u0414\u0430\u0442\u0430 \u0440\u043e\u0436\u0434\u0435\u043d\u0438\u044f|\u0434\u0430\u0442\u0430 \u043d\u0430\u0440\u043e\u0434\u0436\u0435\u043d\u043d\u044f|\u0414\u0430\u0442\u0430 \u043d\u0430\u0440\u043e\u0434\u0436\u0435\u043d\u043d\u044f = {DATE} = -
"""
_SCRIPT_PHONES = r"""
\u05d8\u05dc\u05e4\u05d5\u05df|\u05e0\u05d9\u05d9\u05d3|\u0647\u0627\u062a\u0641|\u0631\u0642\u0645 \u0627\u0644\u0647\u0627\u062a\u0641|\u062c\u0648\u0627\u0644|\u0627\u0644\u062c\u0648\u0627\u0644|\u0645\u0648\u0628\u0627\u064a\u0644|\u03c4\u03b7\u03bb\u03ad\u03c6\u03c9\u03bd\u03bf|\u03a4\u03b7\u03bb\u03ad\u03c6\u03c9\u03bd\u03bf|\u03c4\u03b7\u03bb.|\u03a4\u03b7\u03bb.|\u03ba\u03b9\u03bd\u03b7\u03c4\u03cc|\u039a\u03b9\u03bd\u03b7\u03c4\u03cc|\u092b\u093c\u094b\u0928|\u092b\u094b\u0928|\u092e\u094b\u092c\u093e\u0907\u0932|\u0e42\u0e17\u0e23\u0e28\u0e31\u0e1e\u0e17\u0e4c|\u0e42\u0e17\u0e23|\u0e40\u0e1a\u0e2d\u0e23\u0e4c\u0e42\u0e17\u0e23|\u043c\u043e\u0431\u0438\u043b\u044c\u043d\u044b\u0439|\u041c\u043e\u0431\u0438\u043b\u044c\u043d\u044b\u0439|\u043c\u043e\u0431\u0456\u043b\u044c\u043d\u0438\u0439|\u041c\u043e\u0431\u0456\u043b\u044c\u043d\u0438\u0439|\u0442\u0435\u043b.|\u0422\u0435\u043b.|\ud734\ub300\ud3f0|\ud578\ub4dc\ud3f0|\uc5f0\ub77d\ucc98|\uc804\ud654|\u643a\u5e2f\u96fb\u8a71|\u643a\u5e2f\u756a\u53f7|\u9023\u7d61\u5148|\u8054\u7cfb\u7535\u8bdd|\u806f\u7d61\u96fb\u8a71|\u624b\u6a5f|\u062a\u0644\u0641\u0646|\u10e2\u10d4\u10da\u10d4\u10e4\u10dd\u10dc\u10d8|\u624b\u673a\u53f7|\u624b\u673a|\u7535\u8bdd|\u96fb\u8a71\u756a\u53f7|\u96fb\u8a71|\u643a\u5e2f|\uc804\ud654\ubc88\ud638|\u0442\u0435\u043b\u0435\u0444\u043e\u043d|\u0422\u0435\u043b\u0435\u0444\u043e\u043d = \+?\(?\d[\d() /-]{6,22}\d = phone
"""
_END = r"(?![\w-]|\.\d)"


def _unescaped(text: str) -> str:
    return re.sub(r"\\(?:u([0-9a-f]{4})|x([0-9a-f]{2}))", lambda m: chr(int(m[1] or m[2], 16)), text)


def _read(tables: Iterable[tuple[str, str]]) -> dict[str, list[NumberForm]]:
    found: dict[str, list[NumberForm]] = {}
    for kind, table in tables:
        for line in table.strip("\n").split("\n"):
            labels, form, check = (each.strip() for each in line.split(" =", 2))
            number = NumberForm(kind, LazyPattern(rf"(?i)(?:{form}){_END}"), check)
            spellings = (each for one in _unescaped(labels).split("|") for each in _spellings(one.strip()))
            for label in dict.fromkeys(spellings):
                found.setdefault(label, []).append(number)
    return found


def _spellings(label: str) -> Iterator[str]:
    """Yield a label, and it with its words joined by a blank, `-` and `_`."""
    yield label
    yield from (re.sub("[ _-]", joint, label) for joint in " -_")


LATIN_LABELS = _read(
    (
        ("NATIONAL_ID", _NATIONAL_IDS),
        ("SSN", _SOCIAL_SECURITY),
        ("PASSPORT", _PASSPORTS),
        ("BIRTH_DATE", _BIRTH_DATES),
        ("LOCATION", _PLACES),
        ("PATIENT_ID", _PATIENTS),
        ("CARD", _CARDS),
        ("BANK_ACCOUNT", _ACCOUNTS),
        ("PHONE", _PHONES),
        ("DEVICE_ID", _DEVICES),
        ("VEHICLE", _VEHICLES),
    )
)
"""The forms of numbers by label; labels have one byte a letter."""
OTHER_LABELS = _read(
    (
        ("NATIONAL_ID", _SCRIPTS),
        ("PASSPORT", _SCRIPT_PASSPORTS),
        ("BIRTH_DATE", _SCRIPT_BIRTH_DATES),
        ("PHONE", _SCRIPT_PHONES),
    )
)
"""The same for labels in Chinese, Japanese, Korean, Arabic, Cyrillic, Greek and Hebrew."""


def _folded(label: str) -> Iterator[bytes]:
    """Yield the spellings of a label in the folded plane of a text."""
    yield from {fold(label), fold(label.upper())}


LATIN_LABEL = LazyPattern(build_words_pattern(each for label in LATIN_LABELS for each in _folded(label)))
OTHER_LABEL = LazyPattern("|".join(sorted(map(re.escape, OTHER_LABELS), key=len, reverse=True)))
LABEL_SUFFIX = LazyPattern(r"(?:[Nn]umber|[Nn]ummer(?:et)?|No|Nr|Num|Code|Id|ID|Value)|s?(?![^\W_])")
FILLER = (
    r"(?:card|number|num|no|nr|nummer(?:et)?|numero|n\xfamero|num\xe9ro|numaras\u0131|numarasi|tunnus|broj|code|id|is|was|ist|est|es|\xe9|do|da|de|del|du|der|des|of|the|on|am|le|el|il|em|my|his|her|for|f\xfcr|n\.?[\xba\xb0]"
    r"|cliente?|customer|holder|user|coordinates?|position|location|value)"
)
"""The pattern of a word between a label and its value."""
_REST = LazyPattern(
    rf"(?:Number|Nummer|No|Nr|Num|Code|Id|ID|Value|s)?(?:[ _.-]*{FILLER})*[ _.:#-]*", re.IGNORECASE
)


def _is_passport(value: str) -> bool:
    return sum(map(str.isdigit, value)) >= (2 if len(value) == 9 else 5) and len(set(value)) > 3


def _is_phone(value: str) -> bool:
    digits = sum(map(str.isdigit, value))
    if value.isdigit() and digits < _MIN_PHONE:
        return False
    return 8 <= digits <= 15 and len(set(value)) > 3 and not re.fullmatch(r"\d{4}[-/]\d\d?[-/]\d\d?", value)


def _is_varied(value: str) -> bool:
    digits = [each for each in value if each.isdigit()]
    return len(digits) >= _MIN_DIGITS and len(set(digits)) > 2


_CHECKS: dict[str, Callable[[str], bool]] = {
    "": _is_varied,
    "-": lambda _: True,
    "passport": _is_passport,
    "phone": _is_phone,
}


def is_number_valid(number: NumberForm, value: str) -> bool:
    """Tell whether a value in the form of a number has its check digits."""
    check = _CHECKS.get(number.check)
    if check is None:
        is_valid: Callable[[str], bool] = import_module(f"stdnum.{number.check}").is_valid
        return is_valid(value)
    return check(value)


@lru_cache(maxsize=4096)
def numbers_of_column(name: str) -> tuple[NumberForm, ...]:
    """Return the forms of the numbers in a column of that name."""
    spellings = (name, name.replace("_", " "), name.replace("_", "-"))
    return next((numbers for each in spellings if (numbers := _numbers_under(each))), ())


def _numbers_under(name: str) -> tuple[NumberForm, ...]:
    folded = fold(name)
    for found in LATIN_LABEL.finditer(folded):
        start, end = found.span()
        edge = not start or not name[start - 1].isalnum() or name[start - 1].islower() < name[start].isupper()
        if edge and LABEL_SUFFIX.match(name, end) and _REST.fullmatch(name, end):
            return tuple(LATIN_LABELS.get(name[start:end].lower(), ()))
    other = OTHER_LABEL.search(name)
    return tuple(OTHER_LABELS[other[0]]) if other else ()
