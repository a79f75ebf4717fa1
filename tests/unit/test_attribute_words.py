"""Attributes and arguments in the words of a person."""

import pytest

from sash.values.attribute_words import describe_arguments, describe_attributes


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"brightness": 77}, "30 % bright"),
        ({"volume_level": 1.0, "is_volume_muted": False}, "volume 100 %"),
        ({"volume_level": 0.3, "is_volume_muted": True}, "volume 30 %, muted"),
        ({"temperature": 22.0, "preset_mode": "none"}, "22 degrees"),
        ({"target_temp_low": 19, "target_temp_high": 23.5}, "19 to 23.5 degrees"),
        ({"current_position": 30}, "30 % open"),
        ({"current_position": 100}, ""),
        ({"color_mode": "color_temp", "color_temp_kelvin": 2700, "rgb_color": [255, 166, 87]}, "2700 kelvin"),
        ({"color_mode": "hs", "color_temp_kelvin": None, "rgb_color": [255, 0, 0]}, "red"),
        ({"color_mode": "hs", "rgb_color": [12, 34, 56]}, "rgb 12, 34, 56"),
        ({"percentage": 50, "oscillating": True}, "speed 50 %, oscillating"),
        ({}, ""),
    ],
)
def test_the_attributes_of_a_state(attributes, words):
    assert describe_attributes(attributes) == words


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"brightness_pct": 40, "transition": 2}, "40 % bright, over 2 s"),
        ({"brightness_step_pct": -20}, "20 % darker"),
        ({"is_volume_muted": False}, "not muted"),
        ({"hvac_mode": "heat"}, "mode heat"),
        ({"color_name": "red"}, "red"),
        ({"some_code": "12"}, "some code 12"),
        ({"brightness": "bright"}, "brightness bright"),
    ],
)
def test_the_arguments_of_a_service(arguments, words):
    assert describe_arguments(arguments) == words
