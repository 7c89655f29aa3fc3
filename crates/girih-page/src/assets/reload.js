// Served: another version of the file is shown as soon as there is one.
"use strict";
(() => {
  const events = new EventSource("/events");
  events.onmessage = () => location.reload();
})();
