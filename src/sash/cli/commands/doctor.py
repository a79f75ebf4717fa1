"""`sash doctor`: shows the settings in force, and finds problems. It changes nothing."""

import asyncio

import typer

from sash.cli.options import CommonOptions, Config, Data, Json, Store


def doctor(as_json: Json = False, data: Data = None, store: Store = None, config: Config = None) -> None:
    """Check the configuration, the store, the model and the house; exit with 1 if there is a problem."""
    from sash.cli.doctor.finding import Finding
    from sash.cli.doctor.packages import check_packages
    from sash.cli.doctor.report import print_report, print_report_as_json, run_checks
    from sash.cli.log_setup import log_if_configured
    from sash.errors import SashError

    loaded = None
    try:
        loaded = CommonOptions(data, store, config).load_settings(warn=False)
        read = f"{loaded.file} was read" if loaded.file else "there is no sash.toml, and none is needed"
        checks = asyncio.run(run_checks(log_if_configured(loaded)))
        warnings = [Finding("configuration", "note", warning) for warning in loaded.warnings]
        findings = [Finding("configuration", "ok", read), *warnings, *checks]
    except SashError as error:
        findings = [Finding("configuration", "wrong", error.message), check_packages(None)]
    if as_json:
        print_report_as_json(loaded, findings)
    else:
        print_report(loaded, findings)
    raise typer.Exit(1 if any(finding.status == "wrong" for finding in findings) else 0)
