// Keeps the number on the button right: every minute, when the popup closes, and when somebody pairs or unpairs.

import { refreshBadge } from "./badge.js";
import { api } from "./desk.js";

api.runtime.onInstalled.addListener(refreshBadge);
api.runtime.onStartup.addListener(refreshBadge);
api.runtime.onConnect.addListener((port) => port.onDisconnect.addListener(refreshBadge));
api.storage.local.onChanged.addListener(refreshBadge);
api.alarms.onAlarm.addListener(refreshBadge);
api.alarms.create("badge", { periodInMinutes: 1 });
