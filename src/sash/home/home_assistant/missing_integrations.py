"""The errors for requests whose integration is missing in Home Assistant."""

MISSING_INTEGRATIONS = {
    "history": "Home Assistant's history is not set up: add history to its configuration",
    "recorder": "Home Assistant's recorder is not set up: add recorder to its configuration",
    "logbook": "Home Assistant's logbook is not set up: add logbook to its configuration",
    "system_log": "Home Assistant's system log is not set up: add system_log to its configuration",
}
