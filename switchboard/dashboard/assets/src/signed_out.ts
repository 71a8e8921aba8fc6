/** Whoever is signed out meanwhile is told so once, and stays where they are: they may have typed something. */

export function startSignedOut(): void {
  document.addEventListener('htmx:responseError', event => {
    if ((event as CustomEvent<{ xhr: XMLHttpRequest }>).detail.xhr.status === 401) tellSignedOut()
  })
}

/** In the words of `<template id="signed-out">`; a page without them is led on by the server. */
export function tellSignedOut(): void {
  const words = document.getElementById('signed-out')
  const region = document.getElementById('toasts')
  if (!(words instanceof HTMLTemplateElement) || !region) location.reload()
  else if (!('signedOut' in region.dataset)) {
    region.dataset['signedOut'] = ''
    region.prepend(words.content.cloneNode(true))
  }
}
