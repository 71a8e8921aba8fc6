/**
 * Loaded into a worker before anything of its own: lets the owner's phone, which in the simulator can only write texts, hand
 * over a message that the worker could not read itself. A text `{"resend": …}` becomes the answer that a real phone gives,
 * with the message that is described there; all that follows is the library's and the worker's own.
 */
import { proto } from 'baileys'

const really = proto.Message.decode
const { PEER_DATA_OPERATION_REQUEST_RESPONSE_MESSAGE } = proto.Message.ProtocolMessage.Type

proto.Message.decode = (...args) => {
  const message = really(...args)
  const text = message.conversation ?? ''
  if (!text.startsWith('{"resend"')) return message
  const { resend } = JSON.parse(text)
  const webMessageInfoBytes = proto.WebMessageInfo.encode(proto.WebMessageInfo.fromObject(resend)).finish()
  return proto.Message.fromObject({
    protocolMessage: {
      type: PEER_DATA_OPERATION_REQUEST_RESPONSE_MESSAGE,
      peerDataOperationRequestResponseMessage: {
        stanzaId: 'ASKED',
        peerDataOperationResult: [{ placeholderMessageResendResponse: { webMessageInfoBytes } }]
      }
    }
  })
}
