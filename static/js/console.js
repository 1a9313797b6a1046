/* Everything here only adds to pages that work without it. Parts: the live socket and its revision
   guard, clock and ages, copying, theme, selection, keyboard. */
(() => {
  const $ = (sel, root = document) => root.querySelector(sel)
  const $$ = (sel, root = document) => [...root.querySelectorAll(sel)]
  const say = (words) => { const said = $('#said'); if (said) said.textContent = words }

  // ---- Live: one socket; a fragment older than the one shown is refused; focus and open details stay.
  const bare = (el) => {
    const copy = el.cloneNode(true)
    delete copy.dataset.changed
    if (!copy.className) copy.removeAttribute('class')
    $$('time[data-ago]', copy).forEach((t) => { t.textContent = '' })
    $$('details', copy).forEach((d) => { d.open = false })
    return copy
  }
  const same = (next, shown) => bare(next).isEqualNode(bare(shown))
  const older = (next, shown) => Number(next?.dataset.rev) < Number(shown?.dataset.rev)
  const keep = (shown, next) => {
    $$('details[data-key]', shown).forEach((d) => {
      const twin = $(`details[data-key="${CSS.escape(d.dataset.key)}"]`, next)
      if (twin) twin.open = d.open
    })
    const focus = shown.contains(document.activeElement) && document.activeElement
    const twin = focus && (focus.id ? `#${CSS.escape(focus.id)}` : focus.getAttribute('href') && `a[href="${CSS.escape(focus.getAttribute('href'))}"]`)
    if (twin) queueMicrotask(() => $(twin, document.getElementById(next.id) ?? document)?.focus({ preventScroll: true }))
    $$('input:checked', shown).forEach((box) => { const twin = $(`input[value="${CSS.escape(box.value)}"]`, next); if (twin) twin.checked = true })
    if (next.matches('tr')) next.dataset.changed = ''
  }
  document.addEventListener('htmx:oobBeforeSwap', (event) => {
    const next = event.detail.fragment.firstElementChild
    const shown = event.detail.target
    if (!next || older(next, shown) || same(next, shown)) return void (event.detail.shouldSwap = false)
    if (next.id === shown.id) keep(shown, next)
  })

  // What is fetched anew gives the focus back; a search typed into meanwhile is asked again.
  document.addEventListener('htmx:beforeSwap', ({ detail }) => {
    const focus = detail.target.contains(document.activeElement) && document.activeElement
    held = focus && !focus.id ? { in: detail.target.id, href: focus.getAttribute('href'), at: $$('a, button', detail.target).indexOf(focus) } : null
  })
  document.addEventListener('htmx:afterSwap', () => {
    const root = document.getElementById(held?.in)
    if (root && document.activeElement === document.body) ((held.href && $(`a[href="${CSS.escape(held.href)}"]`, root)) || $$('a, button', root)[held.at])?.focus({ preventScroll: true })
  })
  document.addEventListener('htmx:afterSettle', ({ detail: { xhr, target } }) => {
    selected()
    const { type, form, value } = document.activeElement
    if (type === 'search' && xhr && form.getAttribute('hx-target') === `#${target.id}` && value !== (new URL(xhr.responseURL).searchParams.get('q') ?? '')) form.requestSubmit()
  })

  let wire = null; let poll = null; let late = null; let held = null
  htmx.createWebSocket = (url) => new WebSocket(url, [])
  const mark = (tone, words) => {
    const badge = $('#live-mark')
    if (badge) { badge.hidden = false; badge.dataset.tone = tone; badge.textContent = words }
  }
  const paused = (on) => {
    clearTimeout(late); clearInterval(poll); late = poll = null
    const notice = $('#paused')
    if (notice) notice.hidden = !on
    mark(on ? 'warn' : 'good', on ? 'Paused' : 'Live')
    if (on) { say('Live updates paused, retrying'); poll = setInterval(refresh, 15000) }
  }
  const ended = () => { paused(false); mark('neutral', 'Signed out'); const gone = $('#signed-out'); if (gone) gone.hidden = false }
  async function refresh() {
    const answer = await fetch(location.href, { headers: { 'X-Live-Poll': '1' } }).catch(() => null)
    if (!answer?.ok) return
    if (answer.redirected && new URL(answer.url).pathname !== location.pathname) return ended()
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html')
    $$('[data-rev][id]', page).forEach((next) => {
      const shown = document.getElementById(next.id)
      if (!shown || older(next, shown) || same(next, shown)) return
      keep(shown, next)
      htmx.swap(shown, next.outerHTML, { swapStyle: 'outerHTML' })
    })
    const stamp = $('#paused time'); if (stamp) stamp.textContent = $('[data-clock]')?.textContent ?? ''
  }
  document.addEventListener('htmx:wsOpen', (event) => { wire = event.detail.socketWrapper; wire.socket = event.detail.event.target; paused(false) })
  document.addEventListener('htmx:wsClose', (event) => {
    if (event.detail.event.code === 4401) return ended()
    if (event.detail.event.code === 4404) return mark('neutral', 'Not live')
    if (!document.hidden && document.contains(event.target) && !poll && !late) late = setTimeout(() => paused(true), 1000)
  })
  document.addEventListener('visibilitychange', () => { if (document.hidden) wire?.socket?.close(1000); else if (wire?.socket?.readyState > 1) wire.reconnect() })
  document.addEventListener('htmx:oobErrorNoTarget', (event) => event.stopPropagation(), true)

  // ---- The server's clock, and ages that keep counting by the server's rule (gpucloud/durations.py).
  const clock = $('.topbar [data-clock]')
  const skew = clock ? Date.parse(clock.dateTime) - Date.now() : 0
  const now = () => Date.now() + skew
  const age = (s) => {
    const [size, unit] = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']].find(([n]) => Math.abs(s) >= n) ?? [1, 's']
    const words = `${Math.floor(Math.abs(s) / size)} ${unit}`
    return Math.abs(s) < 1.5 ? 'just now' : s > 0 ? `${words} ago` : `in ${words}`
  }
  const form = clock && new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium', timeZone: clock.dataset.zone })
  const zone = clock?.textContent.split(' ').slice(1).join(' ')
  setInterval(() => {
    if (document.hidden) return
    if (clock) clock.textContent = `${form.format(now())} ${zone}`
    $$('time[data-ago]').forEach((t) => { t.textContent = age((now() - Date.parse(t.dateTime)) / 1000) })
    $$('.toast:not([role="alert"])').forEach((t) => { t.dataset.age = Number(t.dataset.age ?? 0) + 1; if (t.dataset.age > 6 && !t.matches(':hover, :focus-within')) t.remove() })
  }, 1000)

  // ---- Clicks: copy, close, theme, shortcuts, retry.
  document.addEventListener('click', (event) => {
    const on = (sel) => event.target.closest(sel)
    let hit
    if ((hit = on('[data-copy]'))) navigator.clipboard?.writeText(hit.dataset.copy || $('code', hit.closest('figure'))?.textContent || '').then(() => say('Copied'), () => say('Copying is not allowed here'))
    if ((hit = on('[data-close]'))) hit.closest(hit.dataset.close)?.remove()
    if ((hit = on('[data-theme-choice]'))) {
      document.documentElement.dataset.theme = hit.value
      $$('[data-theme-choice]').forEach((b) => b.setAttribute('aria-pressed', b === hit))
    }
    if (on('[data-shortcuts]')) $('#shortcuts')?.showModal()
    if (on('[data-retry]')) { refresh(); wire?.reconnect() }
    if (on('[data-clear]')) { $$('tbody .tick input:checked').forEach((b) => { b.checked = false }); selected() }
    $$('details.menu-box[open]').forEach((menu) => { if (!menu.contains(event.target)) menu.open = false })
  })

  // ---- Selection: the head's box ticks the page, the bulk bar follows.
  const selected = () => {
    const boxes = $$('tbody .tick input'); const on = boxes.filter((b) => b.checked).length
    const all = $('thead .tick input')
    if (all) { all.checked = on > 0 && on === boxes.length; all.indeterminate = on > 0 && on < boxes.length }
    const bar = $('.bulk-bar')
    if (bar) { bar.hidden = !on; $('b', bar).textContent = `${on} selected`; bar.ariaLabel = `${on} selected` }
  }
  document.addEventListener('change', (event) => {
    if (event.target.matches('thead .tick input')) $$('tbody .tick input').forEach((b) => { b.checked = event.target.checked })
    if (event.target.matches('.tick input')) selected()
  })
  selected()

  // ---- Keyboard: / search, g then a letter, j k rows, x tick, ? list.
  const GO = { s: '/servers/', c: '/clusters/', n: '/networks/' }
  let g = 0
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') $$('details.menu-box[open]').forEach((menu) => { menu.open = false; $('summary', menu).focus() })
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches('input:not([type="checkbox"]), textarea, select, [contenteditable]') || $('dialog[open]')) return
    const rows = $$('.table tbody tr'); const here = rows.indexOf(document.activeElement.closest('tr'))
    const row = (step) => { const to = rows[Math.min(Math.max(here + step, 0), rows.length - 1)]; if (to) ($('a', to) ?? $('input', to))?.focus() }
    if (g && Date.now() - g < 1200 && GO[event.key]) { g = 0; return void location.assign(GO[event.key]) }
    g = event.key === 'g' ? Date.now() : 0
    const act = { '/': () => $('.topbar .search input')?.focus(), '?': () => $('#shortcuts')?.showModal(), j: () => row(1), k: () => row(-1), x: () => $('.tick input', rows[here])?.click() }[event.key]
    if (act) { event.preventDefault(); act() }
  })
})()
