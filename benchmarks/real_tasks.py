"""Sixty everyday tasks for a small model, each with a schema and the fields that a right answer has.

Extraction, classification, routing to one of several tools, forms, and a few languages. All texts are invented.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Schema = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """A question, the schema of its answer, and for some places in the answer the values that are right there."""

    name: str
    question: str
    schema: Schema
    right: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    def is_right(self, value: Any) -> bool:
        """Whether each place holds one of its values; texts are compared without regard to case and outer marks."""
        return all(_normal(_at(value, place)) in map(_normal, wanted) for place, wanted in self.right.items())


def _at(value: Any, place: str) -> Any:
    for step in place.split("/"):
        try:
            value = value[int(step)] if isinstance(value, list) else value[step]
        except (KeyError, IndexError, TypeError, ValueError):
            return None
    return value


def _normal(value: Any) -> Any:
    if isinstance(value, str):
        return value.strip(" .,!?\"'").casefold()
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def record(**fields: Any) -> Schema:
    """An object with these fields, all of them required and no others."""
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def one_of(*values: str) -> Schema:
    """One of these strings."""
    return {"type": "string", "enum": list(values)}


TEXT: Schema = {"type": "string", "maxLength": 80}
NUMBER: Schema = {"type": "number"}
COUNT: Schema = {"type": "integer", "minimum": 0, "maximum": 100000}
FLAG: Schema = {"type": "boolean"}
DATE: Schema = {"type": "string", "format": "date"}
PERSON = record(first_name=TEXT, age=COUNT)
CONTACT = record(name=TEXT, email={"type": "string", "pattern": "^[a-z.]+@[a-z]+[.](com|org|net)$"})
INVOICE = record(number=TEXT, total=NUMBER, currency=one_of("EUR", "USD", "GBP"))
EVENT = record(title=TEXT, date=DATE, all_day=FLAG)
TRIP = record(origin=TEXT, destination=TEXT, passengers=COUNT)
PRODUCT = record(product=TEXT, price=NUMBER, in_stock=FLAG)
ORDER = record(item=TEXT, quantity=COUNT, size=one_of("small", "medium", "large"))
SENTIMENT = record(sentiment=one_of("positive", "negative", "neutral"))
SPAM = record(spam=FLAG)
TOPIC = record(topic=one_of("sports", "politics", "science", "food", "travel"))
TICKET = record(department=one_of("billing", "technical", "shipping"), urgent=FLAG)
LANGUAGE = record(language=one_of("English", "French", "German", "Spanish", "Italian"))
CITY_PART = record(city=TEXT, country=TEXT)
TOOLS: dict[str, Schema] = {
    "get_weather": record(city=TEXT),
    "set_timer": record(minutes=COUNT),
    "send_message": record(to=TEXT, text=TEXT),
    "play_music": record(artist=TEXT),
}
ROUTE: Schema = {"anyOf": [record(tool={"const": name}, arguments=parameters) for name, parameters in TOOLS.items()]}


def _extract(name: str, text: str, schema: Schema, /, **right: Any) -> Task:
    wanted = {place: value if isinstance(value, tuple) else (value,) for place, value in right.items()}
    return Task(name, f"Extract the data from this text.\n\n{text}", schema, wanted)


def _classify(name: str, what: str, text: str, schema: Schema, /, **right: Any) -> Task:
    return Task(name, f"{what}\n\n{text}", schema, {place: (value,) for place, value in right.items()})


def _route(name: str, text: str, tool: str, /, **arguments: Any) -> Task:
    listed = "\n".join(f"- {each}({', '.join(schema['properties'])})" for each, schema in TOOLS.items())
    question = f"Choose the tool for this request, and its arguments.\nTools:\n{listed}\n\nRequest: {text}"
    right = {"tool": (tool,), **{f"arguments/{place}": (value,) for place, value in arguments.items()}}
    return Task(name, question, ROUTE, right)


_MOOD = "Is the mood of this review positive, negative or neutral?"
_JUNK = "Is this message spam?"
_ABOUT = "What is this text about: sports, politics, science, food or travel?"
_DESK = "Which department handles this ticket: billing, technical or shipping? Is it urgent?"
_TONGUE = "In which language is this text written?"

TASKS = [
    _extract("person-1", "Maria is 34 years old and lives in Porto.", PERSON, first_name="Maria", age=34),
    _extract("person-2", "My brother Tom turned 19 last week.", PERSON, first_name="Tom", age=19),
    _extract("person-3", "At 71, Ingrid still swims every morning.", PERSON, first_name="Ingrid", age=71),
    _extract("contact-1", "Write to Anna Berg at anna.berg@example.com.", CONTACT, email="anna.berg@example.com"),
    _extract("contact-2", "You can reach Luis Ortega: luis@sample.org", CONTACT, email="luis@sample.org"),
    _extract("invoice-1", "Invoice A-1042. Total: 99.50 EUR.", INVOICE, number="A-1042", total=99.5, currency="EUR"),
    _extract("invoice-2", "Bill no. 7781, amount due 250 USD", INVOICE, number="7781", total=250, currency="USD"),
    _extract("invoice-3", "Your receipt R55 over 12 GBP", INVOICE, number="R55", total=12, currency="GBP"),
    _extract("event-1", "Team lunch on 2026-03-14, all day.", EVENT, date="2026-03-14", all_day=True),
    _extract("event-2", "Dentist, 2025-11-02 at 9:30 in the morning", EVENT, date="2025-11-02", all_day=False),
    _extract(
        "trip-1", "Two people want to fly from Oslo to Rome.", TRIP, origin="Oslo", destination="Rome", passengers=2
    ),
    _extract(
        "trip-2", "Train from Paris to Lyon for 4 passengers", TRIP, origin="Paris", destination="Lyon", passengers=4
    ),
    _extract("product-1", "The desk lamp costs 45 dollars and is in stock.", PRODUCT, price=45, in_stock=True),
    _extract("product-2", "Sold out: the red bicycle for 320 euros.", PRODUCT, price=320, in_stock=False),
    _extract("city-1", "Kyoto is a city in Japan.", CITY_PART, city="Kyoto", country="Japan"),
    _extract("city-2", "Lagos is the largest city of Nigeria.", CITY_PART, city="Lagos", country="Nigeria"),
    _classify("mood-1", _MOOD, "I love this phone, it is wonderful!", SENTIMENT, sentiment="positive"),
    _classify("mood-2", _MOOD, "Terrible service, I want my money back.", SENTIMENT, sentiment="negative"),
    _classify("mood-3", _MOOD, "The best meal of my life.", SENTIMENT, sentiment="positive"),
    _classify("mood-4", _MOOD, "It broke after one day. Awful quality.", SENTIMENT, sentiment="negative"),
    _classify("mood-5", _MOOD, "The parcel arrived on Tuesday.", SENTIMENT, sentiment="neutral"),
    _classify("spam-1", _JUNK, "You won a million dollars! Click here now!!!", SPAM, spam=True),
    _classify("spam-2", _JUNK, "Hi mom, I will be home for dinner at seven.", SPAM, spam=False),
    _classify("spam-3", _JUNK, "Cheap pills, no prescription, buy now", SPAM, spam=True),
    _classify("spam-4", _JUNK, "The meeting moved to room 12.", SPAM, spam=False),
    _classify("topic-1", _ABOUT, "The team scored three goals in the final match.", TOPIC, topic="sports"),
    _classify("topic-2", _ABOUT, "Parliament voted on the new law today.", TOPIC, topic="politics"),
    _classify("topic-3", _ABOUT, "Physicists measured a new particle.", TOPIC, topic="science"),
    _classify("topic-4", _ABOUT, "Add garlic and basil to the tomato soup.", TOPIC, topic="food"),
    _classify("topic-5", _ABOUT, "Ten hotels by the sea for your next holiday", TOPIC, topic="travel"),
    _classify("ticket-1", _DESK, "I was charged twice for my invoice.", TICKET, department="billing"),
    _classify("ticket-2", _DESK, "The app crashes with an error. Urgent!", TICKET, department="technical", urgent=True),
    _classify("ticket-3", _DESK, "My package has not been delivered.", TICKET, department="shipping"),
    _route("route-weather-1", "What is the weather in Lisbon?", "get_weather", city="Lisbon"),
    _route("route-weather-2", "Will it rain in Oslo today?", "get_weather", city="Oslo"),
    _route("route-timer-1", "Set a timer for 10 minutes.", "set_timer", minutes=10),
    _route("route-timer-2", "Wake me in 25 minutes with a timer", "set_timer", minutes=25),
    _route("route-message-1", "Send Peter the message: I am late", "send_message", to="Peter"),
    _route("route-message-2", "Tell Julia by message that dinner is ready.", "send_message", to="Julia"),
    _route("route-music-1", "Play some music by Mozart.", "play_music", artist="Mozart"),
    _route("route-music-2", "I want to listen to Nina Simone", "play_music", artist="Nina Simone"),
    _extract("order-1", "I would like 3 large pizzas.", ORDER, quantity=3, size="large"),
    _extract("order-2", "One small coffee, please.", ORDER, quantity=1, size="small"),
    _extract("order-3", "Five medium t-shirts for the club", ORDER, quantity=5, size="medium"),
    _extract(
        "form-address",
        "Please ship it to Nora Klein, 12 Lake Street, 80331 Munich.",
        record(name=TEXT, street=TEXT, postal_code={"type": "string", "pattern": "^[0-9]{5}$"}, city=TEXT),
        name="Nora Klein",
        postal_code="80331",
        city="Munich",
    ),
    _extract(
        "form-hotel",
        "A double room for 2 nights from 2026-07-01, with breakfast.",
        record(room=one_of("single", "double"), nights=COUNT, arrival=DATE, breakfast=FLAG),
        room="double",
        nights=2,
        arrival="2026-07-01",
    ),
    _extract(
        "form-list",
        "Shopping list: milk, bread and eggs.",
        record(items={"type": "array", "items": TEXT, "minItems": 1, "maxItems": 6}),
        **{"items/0": "milk", "items/1": "bread", "items/2": "eggs"},
    ),
    _extract(
        "form-time",
        "The library opens at 09:00 and closes at 18:30.",
        record(
            opens={"type": "string", "pattern": "^[0-9]{2}:[0-9]{2}$"},
            closes={"type": "string", "pattern": "^[0-9]{2}:[0-9]{2}$"},
        ),
        opens="09:00",
        closes="18:30",
    ),
    _extract(
        "form-book",
        "The novel Dracula was written by Bram Stoker in 1897.",
        record(title=TEXT, author=TEXT, year={"type": "integer", "minimum": 1000, "maximum": 2100}),
        title="Dracula",
        author="Bram Stoker",
        year=1897,
    ),
    _extract(
        "form-nested",
        "Sam's dog Rex is 5 years old.",
        record(owner=TEXT, pet=record(kind=one_of("dog", "cat", "bird"), name=TEXT, age=COUNT)),
        owner="Sam",
        **{"pet/kind": "dog", "pet/name": "Rex", "pet/age": 5},
    ),
    _classify("tongue-1", _TONGUE, "Où est la bibliothèque ?", LANGUAGE, language="French"),
    _classify("tongue-2", _TONGUE, "Wo ist der Bahnhof?", LANGUAGE, language="German"),
    _classify("tongue-3", _TONGUE, "¿Dónde está la playa?", LANGUAGE, language="Spanish"),
    _classify("tongue-4", _TONGUE, "Where is the station?", LANGUAGE, language="English"),
    _extract("german-person", "Jürgen ist 52 Jahre alt.", PERSON, first_name="Jürgen", age=52),
    _extract("french-person", "Je m'appelle Zoé et j'ai 8 ans.", PERSON, first_name="Zoé", age=8),
    _extract("spanish-order", "Quiero dos cafés grandes.", ORDER, quantity=2, size="large"),
    _extract("italian-city", "Torino è una città in Italia.", CITY_PART, city="Torino", country=("Italia", "Italy")),
    _classify("french-mood", _MOOD, "Ce film est magnifique, je l'adore !", SENTIMENT, sentiment="positive"),
    _classify("german-mood", _MOOD, "Das Essen war schlecht und kalt.", SENTIMENT, sentiment="negative"),
]
