"""The rooms, people, questions, answers and states of the conversations."""

ROOMS = (
    "kitchen",
    "hallway",
    "living room",
    "bedroom",
    "office",
    "cellar",
    "garage",
    "bathroom",
    "attic",
    "guest room",
    "laundry room",
    "nursery",
)
PEOPLE = ("Mara", "Jonas", "Edith", "Paul", "the neighbour", "grandma")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

FOLLOW_UPS = (
    "And in the {other}?",
    "Is that more than yesterday?",
    "Since when?",
    "Are you sure about that?",
    "Thanks, that helps.",
    "Hm, that is strange. What could be the reason?",
    "And what was it at {clock}?",
    "OK, leave it like that for now.",
    "Can {person} see that on the tablet as well?",
    "Then let us look at it again on {day}.",
)

# Each topic has questions, the entities that they are about, and answers.
TOPICS: tuple[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]], ...] = (
    (
        (
            "How warm is it in the {room} right now?",
            "It feels chilly in the {room}, has the heating been on at all since {clock}?",
            "What is the target temperature of the thermostat in the {room} for tonight?",
            "{person} says the {room} never gets above {t} degrees. Is that true for the last week?",
            "Which of the rooms is the coldest at the moment, and by how much?",
        ),
        ("climate.{r}", "sensor.{r}_temperature", "sensor.{r}_humidity", "binary_sensor.{r}_window"),
        (
            "The {room} is at {t}.{d} °C and {pct} % humidity, the thermostat is set to {t2} °C.",
            "The radiator valve has been open to {pct} % since {clock}, it should warm up within the hour.",
            "Over the last seven days it was between {t}.{d} and {t2} °C, coldest in the early morning.",
            "A window in the {room} was open from {clock} for {n} minutes, which explains most of the drop.",
        ),
    ),
    (
        (
            "Did I leave a light on in the {room}?",
            "Which lamps are still burning downstairs?",
            "Why does the ceiling light in the {room} go out while I am still sitting there?",
            "How bright is the reading lamp in the {room} set, in percent?",
            "The colour of the lamp in the {room} looks odd, what is it set to?",
        ),
        ("light.{r}_ceiling", "light.{r}_lamp", "binary_sensor.{r}_motion", "sensor.{r}_illuminance"),
        (
            "The ceiling light in the {room} is on at {pct} % brightness, the lamp beside it is off.",
            "It goes out {n} minutes after the last motion; the detector looks past the armchair.",
            "Nothing else is burning downstairs, only the night light in the {other}.",
            "The colour temperature is {k} kelvin, which is the evening scene that begins at {clock}.",
        ),
    ),
    (
        (
            "Are all windows closed? It is going to rain.",
            "Is the front door locked?",
            "Who opened the garage door at {clock}?",
            "Has the back door been opened since we left on {day}?",
            "Please check every contact on the ground floor before I go to bed.",
        ),
        ("binary_sensor.{r}_window", "lock.front_door", "cover.garage_door", "binary_sensor.back_door"),
        (
            "All windows are closed except the tilted one in the {room}, open since {clock}.",
            "The front door is locked; {person} locked it at {clock} with the keypad.",
            "The garage door was opened at {clock} by the remote in the car and closed {n} minutes later.",
            "The contact in the {room} last reported {n} minutes ago and its battery is at {pct} %.",
        ),
    ),
    (
        (
            "How much electricity did we use yesterday, and what was the biggest consumer?",
            "What does the dryer draw when it is on standby?",
            "Our bill went up by {pct} percent. Can you see since when we need more power?",
            "Is the socket in the {room} worth a closer look, or is {w} watts normal for it?",
            "Compare the consumption of this week with the same week a month ago.",
        ),
        ("sensor.house_energy_daily", "sensor.{r}_socket_power", "sensor.dryer_power", "sensor.grid_import"),
        (
            "Yesterday it was {kwh}.{d} kWh, of which the heat pump took {pct} % and the oven {kw}.{d} kWh.",
            "The socket in the {room} draws {w} W around the clock, about {n} kWh a month.",
            "The base load has risen from {w} W to {w2} W since {day}, at the time the freezer was moved.",
            "Compared with a month ago you need {pct} % more, mostly between {clock} and midnight.",
        ),
    ),
    (
        (
            "What are the panels on the roof producing at the moment?",
            "Will the battery last until tomorrow morning?",
            "Should I run the dishwasher now or wait for the sun?",
            "How much did we feed into the grid on {day}?",
            "Why is the inverter showing a warning?",
        ),
        ("sensor.solar_power", "sensor.battery_charge", "sensor.grid_export", "sensor.inverter_status"),
        (
            "The panels deliver {kw}.{d} kW, the house takes {w} W of it and the rest charges the battery.",
            "The battery is at {pct} % and would be empty at about {clock} if the evening is as usual.",
            "Waiting pays off: the forecast shows sun from {clock} on, with a surplus of some {kw}.{d} kW.",
            "The inverter reports code F{n}: grid voltage at the limit for {d} minutes. It has recovered.",
        ),
    ),
    (
        (
            "Is the washing machine done yet?",
            "How long does the dryer still need?",
            "Which programme did {person} start on the dishwasher?",
            "The fridge is beeping. What is wrong with it?",
            "Was the oven on when we left the house at {clock}?",
        ),
        (
            "sensor.washing_machine_state",
            "sensor.dryer_remaining",
            "sensor.dishwasher_programme",
            "sensor.fridge_temperature",
        ),
        (
            "The washing machine finished at {clock}; the laundry has been lying there for {n} minutes.",
            "The dryer needs another {n} minutes, it is in its second phase.",
            "The fridge is at {d} °C because its door stood open for {n} minutes; it is cooling down again.",
            "The oven was switched off at {clock}, its plate was still warm then, at {pct} degrees.",
        ),
    ),
    (
        (
            "The boiler makes a noise again. Has it reported an error?",
            "What is the water pressure of the heating circuit?",
            "When was the filter of the ventilation changed last?",
            "Is there enough hot water for two baths?",
            "What flow temperature did the heat pump run with last night?",
        ),
        (
            "sensor.boiler_pressure",
            "sensor.boiler_error",
            "sensor.hot_water_temperature",
            "climate.heat_pump",
        ),
        (
            "The circuit is at 1.{d} bar, which is fine; below 1.0 bar it would have to be refilled.",
            "There is an entry E{n} from {clock}: ignition failed once, the second attempt succeeded.",
            "The tank has {pct} litres at {t2} degrees, enough for one bath and two showers.",
            "The flow temperature was between {t2} and {t3} °C last night, following the outside sensor.",
        ),
    ),
    (
        (
            "Do the tomatoes need water today?",
            "How much rain did we have since {day}?",
            "Did the sprinkler behind the hedge run this morning?",
            "Is the soil in the raised bed still moist?",
            "Will there be frost tonight? I would bring the lemon tree in.",
        ),
        ("sensor.raised_bed_moisture", "sensor.rain_today", "switch.sprinkler_hedge", "weather.home"),
        (
            "The soil is at {pct} %, so watering can wait until {day}.",
            "The gauge has collected {n}.{d} millimetres since {day}, most of it in one shower at {clock}.",
            "The sprinkler ran for {n} minutes from {clock} on and used {pct} litres.",
            "The forecast says {d} degrees at the lowest, towards six in the morning; the tree may stay.",
        ),
    ),
    (
        (
            "How far is the car charged?",
            "Can I make it to the airport and back with what is in the battery?",
            "At what time does the cheap tariff begin tonight?",
            "Did the wallbox stop by itself on {day}?",
            "What did charging cost us this month?",
        ),
        ("sensor.car_battery", "sensor.wallbox_power", "sensor.tariff_price", "switch.wallbox"),
        (
            "The car is at {pct} % and charges with {kw}.{d} kW; it will be full at about {clock}.",
            "The airport and back is {pct} kilometres, so you would come home with some {n} % left.",
            "The cheap hours begin at {clock} with {n} cents a kilowatt hour.",
            "The wallbox paused on {day} at {clock} because the house needed more than {kw} kW.",
        ),
    ),
    (
        (
            "Was somebody at the door while I was in the shower?",
            "What did the camera in the driveway see last night?",
            "Is the alarm armed?",
            "Has {person} come home yet?",
            "The motion detector in the {room} went off at {clock}. Do you know why?",
        ),
        ("camera.driveway", "alarm_control_panel.house", "person.{p}", "binary_sensor.{r}_motion"),
        (
            "The bell rang at {clock}: a courier, who left a parcel behind the bin.",
            "The camera has {d} recordings, a fox at {clock} and otherwise headlights of passing cars.",
            "The alarm is armed for the night, with the {room} left out because of the cat.",
            "{person} arrived at {clock}; the phone has been in the wireless network since then.",
        ),
    ),
    (
        (
            "The wireless network is slow in the {room}. Is something overloaded?",
            "Which devices are offline?",
            "Which batteries will I have to change soon?",
            "The voice satellite in the {room} does not answer. What happened to it?",
            "Is there an update that I should install?",
        ),
        ("sensor.router_load", "sensor.{r}_satellite_signal", "update.firmware", "sensor.{r}_battery"),
        (
            "Two devices are offline: the plug in the {room} since {clock} and the scale in the {other}.",
            "The access point in the {other} serves {n} devices and is busy at {pct} %.",
            "The lowest batteries are the button in the {room} with {d} % and the leak sensor with {n} %.",
            "The satellite lost its connection at {clock} and has a signal of −{pct} dBm, which is too weak.",
        ),
    ),
    (
        (
            "Which automations ran this morning before {clock}?",
            "Why did the blinds come down at noon on {day}?",
            "What would the holiday mode do, exactly?",
            "I want the {room} to be warm when {person} gets up. Is there a schedule for it?",
            "Something switched the radio on in the middle of the night. What was it?",
        ),
        ("automation.morning", "cover.{r}_blind", "schedule.{r}_heating", "media_player.{r}"),
        (
            "Three ran: the coffee machine at {clock}, the blinds {n} minutes later, and the heating.",
            "The blinds came down because the sun sensor passed {k} lux with {t2} °C inside.",
            "There is a schedule for the {room}: from {clock} to {t} °C on working days, later at weekends.",
            "The radio was started at {clock} by the alarm clock of {person}, which is still set for {day}.",
        ),
    ),
    (
        (
            "What is on the shopping list?",
            "When do they collect the paper bin?",
            "I am cooking for {n} guests on {day}, any idea how early to heat the dining table corner?",
            "Tell me something about the house that I do not know yet.",
            "What is the plan for tomorrow?",
        ),
        ("todo.shopping", "calendar.waste", "calendar.family", "sensor.{r}_temperature"),
        (
            "The list has {d} things: oat milk, dishwasher tabs, light bulbs E{n} and cinnamon among them.",
            "The paper bin is collected on {day}, it has to be at the road by {clock}.",
            "Tomorrow {person} has the dentist at {clock}, and the chimney sweep comes after that.",
            "With {n} people in the room it warms up by itself; starting {d}0 minutes earlier is enough.",
        ),
    ),
)

UNITS = {
    "temperature": "°C",
    "humidity": "%",
    "battery": "%",
    "moisture": "%",
    "load": "%",
    "power": "W",
    "energy": "kWh",
    "grid": "kWh",
    "pressure": "bar",
    "illuminance": "lx",
    "signal": "dBm",
    "remaining": "min",
    "rain": "mm",
    "price": "EUR/kWh",
}
STATES: dict[str, tuple[str, ...]] = {
    "binary_sensor": ("on", "off"),
    "light": ("on", "off"),
    "switch": ("on", "off"),
    "lock": ("locked", "unlocked"),
    "cover": ("open", "closed"),
    "climate": ("heat", "off", "auto"),
    "person": ("home", "not_home"),
    "automation": ("on", "off"),
    "update": ("on", "off"),
    "camera": ("idle", "recording"),
    "alarm_control_panel": ("armed_night", "disarmed"),
    "media_player": ("playing", "idle", "off"),
    "weather": ("sunny", "cloudy", "rainy"),
    "calendar": ("on", "off"),
    "schedule": ("on", "off"),
    "todo": ("3", "5", "8"),
}
