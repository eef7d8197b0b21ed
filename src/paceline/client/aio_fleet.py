"""The client of operators for asyncio: the gateway, and beside it the dispatcher and the orchestrator. `sync_fleet` is
the same for code that blocks."""

from typing import Unpack

from paceline.client import requests_fleet as fleet
from paceline.client import requests_fleet_inventory as inventory
from paceline.client import requests_fleet_sessions as sessions
from paceline.client.aio import AsksGateway
from paceline.client.awaiting import Does, Each, Group, Options
from paceline.client.calls import Urls


class Fleet(Group):
    state = Does(fleet.fleet)
    policy = Does(fleet.policy)
    overview = Does(fleet.overview)
    roster = Does(fleet.roster)
    start = Does(fleet.start)
    stop = Does(fleet.stop)
    pause = Does(fleet.pause)
    resume = Does(fleet.resume)
    queues = Does(fleet.queue_lengths)
    pacers = Does(fleet.pacers)
    each_pacer = Each(fleet.pacers)
    metrics = Does(fleet.metrics)
    each_metrics = Each(fleet.metrics)
    incidents = Does(fleet.incidents)
    each_incident = Each(fleet.incidents)
    job_events = Does(fleet.job_events)
    each_job_event = Each(fleet.job_events)
    health = Does(fleet.health)


class SmartGuards(Group):
    status = Does(fleet.smartguard)
    enable = Does(fleet.set_smartguard)


class Sessions(Group):
    list = Does(sessions.list_sessions)
    each = Each(sessions.list_sessions)
    create = Does(sessions.create_session)
    get = Does(sessions.get_session)
    change = Does(sessions.change_session)
    remove = Does(sessions.remove_session)
    start = Does(sessions.start_session)
    stop = Does(sessions.stop_session)
    restart = Does(sessions.restart_session)
    pause = Does(sessions.pause_session)
    resume = Does(sessions.resume_session)
    logout = Does(sessions.logout)
    qr = Does(sessions.qr)
    pairing_code = Does(sessions.pairing_code)
    scan_simulated = Does(sessions.scan_simulated)
    events = Does(sessions.session_events)
    each_event = Each(sessions.session_events)
    history = Does(sessions.session_history)
    each_history = Each(sessions.session_history)
    logs = Does(sessions.session_logs)
    explain = Does(fleet.explain)
    pacing = Does(fleet.pacing)
    set_rpm = Does(fleet.set_rpm)
    set_pacer = Does(fleet.set_pacer)
    clear_cooldown = Does(fleet.clear_cooldown)
    requeue = Does(fleet.requeue)
    cancel_queue = Does(fleet.cancel_queue)


class Proxies(Group):
    upload = Does(inventory.upload_proxies)
    list = Does(inventory.list_proxies)
    each = Each(inventory.list_proxies)
    mark_bad = Does(inventory.mark_bad)
    mark_ok = Does(inventory.mark_ok)
    drop = Does(inventory.drop_proxy)


class Profiles(Group):
    upload = Does(inventory.upload_profiles)
    list = Does(inventory.list_profiles)
    each = Each(inventory.list_profiles)
    drop = Does(inventory.drop_profile)


class Inventory(Group):
    status = Does(inventory.status)
    audit = Does(inventory.audit)
    each_audit = Each(inventory.audit)
    alert_channels = Does(inventory.alert_channels)
    test_alerts = Does(inventory.test_alerts)
    health = Does(inventory.health)


class AsyncOperator(AsksGateway):
    """The whole platform, asked with `key`: all that `AsyncPaceline` can do, and what operators do.
    Safe to share between tasks; close it, or use `async with`."""

    def __init__(self, urls: Urls, key: str, **options: Unpack[Options]) -> None:
        super().__init__(urls.by_service(), key, **options)
        self.fleet = Fleet(self)
        self.smartguard = SmartGuards(self)
        self.sessions = Sessions(self)
        self.proxies = Proxies(self)
        self.profiles = Profiles(self)
        self.inventory = Inventory(self)
