"""Register the teacher types that send nothing."""

from tracemill.teachers.core.teacher_protocol import Teacher
from tracemill.teachers.core.teacher_settings import HandwrittenSettings, RecordedSettings, SimulatedSettings
from tracemill.teachers.kind import TeacherContext, TeacherKind


def _simulated(settings: SimulatedSettings, context: TeacherContext) -> Teacher:
    from tracemill.teachers.offline.simulated_teacher import SimulatedTeacher

    return SimulatedTeacher(settings)


def _recorded(settings: RecordedSettings, context: TeacherContext) -> Teacher:
    from tracemill.teachers.offline.recorded_teacher import RecordedTeacher

    return RecordedTeacher(settings, context.redact)


def _handwritten(settings: HandwrittenSettings, context: TeacherContext) -> Teacher:
    from tracemill.teachers.offline.handwritten_teacher import HandwrittenTeacher

    return HandwrittenTeacher(settings, context.redact)


SIMULATED = TeacherKind(SimulatedSettings, _simulated)
RECORDED = TeacherKind(RecordedSettings, _recorded)
HANDWRITTEN = TeacherKind(HandwrittenSettings, _handwritten)
