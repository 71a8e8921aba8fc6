"""Names, numbers and words that belong to nobody: all numbers are of ranges that are kept for fiction."""

from collections.abc import Iterator
from random import Random

_AREAS = ("202", "303", "310", "404", "415", "512", "617", "702", "808", "907")
_AMERICAN = [f"1{area}55501{last:02}" for area in _AREAS for last in range(100)]
_BRITISH = [f"447700900{last:03}" for last in range(1_000)]
_ISRAELI = [f"97255000{last:04}" for last in range(10_000)]

_FIRST = ("Blue Door", "Corner", "Green Thumb", "Harbour", "Moonlight", "Old Mill", "Riverside", "Sunny Side")
_TRADE = ("Bakery", "Books", "Cinema", "Clinic", "Cycles", "Garden", "Kitchen", "Optics", "Pharmacy", "Studio")
_HEBREW_TRADE = ("מאפיית", "ספרי", "מרפאת", "גינת", "מטבח", "אופטיקה", "סטודיו", "מוסך", "פרחי", "קפה")
_HEBREW_NAME = ("הנמל", "הדקל", "השקד", "הגליל", "הכיכר", "אלמוג", "לבנה", "הזית")

WORDS = (
    "Your order {n} is ready to be picked up.",
    "A short reminder of your appointment tomorrow at {hour}:30.",
    "Thank you for your visit! Your receipt is number {n}.",
    "We are open until {hour}:00 today.",
    "ההזמנה שלך מספר {n} מוכנה לאיסוף.",
    "תזכורת: התור שלך נקבע למחר בשעה {hour}:30.",
    "תודה שקנית אצלנו! מספר הקבלה שלך הוא {n}.",
    "The parcel {n} שלך יצאה לדרך and arrives by {hour}:00.",
)


def phones(chance: Random) -> Iterator[str]:
    """Each once, of three countries, until there are no more: 12,000."""
    kinds = [chance.sample(kind, len(kind)) for kind in (_AMERICAN, _BRITISH, _ISRAELI)]
    while any(kinds):
        kind = chance.choice([kind for kind in kinds if kind])
        yield kind.pop()


def name(chance: Random) -> str:
    if chance.random() < 0.5:
        return f"{chance.choice(_HEBREW_TRADE)} {chance.choice(_HEBREW_NAME)}"
    return f"{chance.choice(_FIRST)} {chance.choice(_TRADE)}"


def text(chance: Random) -> str:
    return chance.choice(WORDS).format(n=chance.randint(1000, 9999), hour=chance.randint(16, 20))
